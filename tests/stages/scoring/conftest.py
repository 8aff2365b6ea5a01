import pytest


@pytest.fixture(scope="session")
def model(make_model):
    """A context of 24 tokens, and weights so large that choices differ clearly."""
    return make_model(context=24, init_std=0.3)
