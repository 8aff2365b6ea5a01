import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from artifacts_schema.errors import UsageError
from stages.model.config import Experts, ModelShape
from stages.model.decoder import Decoder
from stages.training.config import MuonConfig, OptimizerConfig, ParameterGroup
from stages.training.optimizer import Optimizer, Treatment, treatments


def tiny(tied=True, **shape):
    base = {"width": 16, "layers": 2, "heads": 2, "kv_heads": 1, "context": 8}
    return Decoder(ModelShape(**base, tied_embeddings=tied, **shape).with_vocabulary(11))


def groups(*given):
    return OptimizerConfig(groups=tuple(ParameterGroup(**one) for one in given))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_every_parameter_is_in_one_group_and_only_matrices_decay(tied, name):
    model = tiny(tied)
    optimizer = Optimizer(model, OptimizerConfig(name=name, weight_decay=0.3))
    all_groups = [group for part in optimizer.parts.values() for group in part.param_groups]
    grouped = [p for group in all_groups for p in group["params"]]
    assert sorted(map(id, grouped)) == sorted(map(id, model.parameters()))
    plain = {n for n, one in optimizer.treatments.items() if one.weight_decay == 0.0}
    assert plain == {
        "embedding.weight",
        "norm.weight",
        *(f"blocks.{n}.{part}_norm.weight" for n in (0, 1) for part in ("attention", "mlp")),
    }
    assert {group["weight_decay"] for group in all_groups} == {0.3, 0.0}


def test_muon_has_the_matrices_of_the_blocks_and_adamw_the_rest():
    found = treatments(tiny(tied=False), OptimizerConfig(name="muon"))
    assert {name for name, one in found.items() if one.optimizer == "muon"} == {
        f"blocks.{n}.{part}.weight"
        for n in (0, 1)
        for part in (
            *(f"attention.{one}" for one in ("query", "key", "value", "output")),
            *(f"mlp.{one}" for one in ("gate", "up", "down")),
        )
    }
    assert found["head.weight"] == Treatment("adamw", 1.0, 0.1)


def test_stacked_experts_are_matrices_for_both():
    model = tiny(experts=Experts(experts=4, chosen=2, width=8))
    found = treatments(model, OptimizerConfig(name="muon"))
    assert found["blocks.1.mlp.experts.gate"] == Treatment("muon", 1.0, 0.1)
    assert "blocks.1.mlp.router.bias" not in found


def test_biases_do_not_decay():
    assert treatments(nn.Linear(3, 2), OptimizerConfig())["bias"].weight_decay == 0.0


def test_the_first_group_that_matches_decides():
    settings = groups(
        {"match": "blocks.0.*norm*", "rate": 2.0},
        {"match": "blocks.*", "weight_decay": 0.0, "rate": 0.5},
        {"match": "embedding.weight", "weight_decay": 0.01},
    )
    found = treatments(tiny(), settings)
    assert found["blocks.0.mlp_norm.weight"] == Treatment("adamw", 2.0, 0.0)
    assert found["blocks.1.mlp_norm.weight"] == Treatment("adamw", 0.5, 0.0)
    assert found["blocks.0.mlp.up.weight"] == Treatment("adamw", 0.5, 0.0)
    assert found["embedding.weight"] == Treatment("adamw", 1.0, 0.01)
    assert found["norm.weight"] == Treatment("adamw", 1.0, 0.0)


def test_a_pattern_that_matches_nothing_is_refused_with_names_that_there_are():
    with pytest.raises(UsageError, match=r"groups\.1.*'layers\.\*'.*embedding\.weight"):
        treatments(tiny(), groups({"match": "norm.*"}, {"match": "layers.*"}))


def test_a_pattern_behind_one_that_takes_all_it_matches_is_refused():
    with pytest.raises(UsageError, match=r"groups\.1.*group before it"):
        treatments(tiny(), groups({"match": "blocks.*"}, {"match": "blocks.1.*", "rate": 2}))


def test_a_group_may_take_matrices_from_muon_but_not_give_it_vectors():
    def asked(match, optimizer):
        group = ParameterGroup(match=match, optimizer=optimizer)
        return treatments(tiny(tied=False), OptimizerConfig(name="muon", groups=(group,)))

    assert asked("*.down.weight", "adamw")["blocks.0.mlp.down.weight"].optimizer == "adamw"
    assert asked("head.*", "muon")["head.weight"].optimizer == "muon"
    with pytest.raises(UsageError, match=r"blocks\.0\.attention_norm\.weight.*muon"):
        asked("blocks.*", "muon")


@pytest.mark.parametrize(
    "values", [{"muon": {"momentum": 0.9}}, {"groups": [{"match": "*", "optimizer": "muon"}]}]
)
def test_settings_of_muon_without_muon_are_refused(values):
    with pytest.raises(UsageError, match="name is adamw"):
        OptimizerConfig.parse(values, where="optimizer")
    OptimizerConfig.parse({"name": "muon", **values}, where="optimizer")


def test_new_fields_bear_no_identity_at_their_default():
    assert OptimizerConfig().identity() == {}
    assert OptimizerConfig(muon=MuonConfig()).identity() == {}
    assert OptimizerConfig(beta2=0.99).identity() == {"beta2": 0.99}


@settings(max_examples=50, deadline=None)
@given(
    patterns=st.lists(
        st.sampled_from(["*", "blocks.*", "*norm*", "embedding.*", "*.weight", "blocks.0.*"]),
        max_size=4,
    )
)
def test_groups_cover_every_parameter_once_or_are_refused(patterns):
    model = MODEL
    try:
        optimizer = Optimizer(model, groups(*({"match": p, "rate": 2.0} for p in patterns)))
    except UsageError:
        return
    grouped = [p for g in optimizer.parts["adamw"].param_groups for p in g["params"]]
    assert sorted(map(id, grouped)) == sorted(map(id, model.parameters()))


MODEL = tiny()
