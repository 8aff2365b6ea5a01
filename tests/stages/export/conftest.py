import pytest


@pytest.fixture(scope="session")
def model(make_model):
    """A context that holds more of the texts by which a release is verified."""
    return make_model(context=128)
