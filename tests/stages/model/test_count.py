import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from stages.model.config import ModelConfig
from stages.model.count import count_parameters, forward_flops_per_token, training_flops_per_token
from stages.model.decoder import Decoder


@pytest.mark.parametrize("tied", [True, False])
def test_counted_parameters_are_those_of_the_module(tied):
    config = ModelConfig(
        vocabulary_size=71, width=48, layers=3, heads=6, kv_heads=2, tied_embeddings=tied
    )
    module = Decoder(config)
    assert count_parameters(config).total == sum(p.numel() for p in module.parameters())


def test_forward_operations_are_those_that_torch_counts():
    config = ModelConfig(vocabulary_size=71, width=48, layers=3, heads=6, kv_heads=6)
    tokens_BL = torch.zeros(2, 16, dtype=torch.int64)
    model = Decoder(config)
    # The fused CPU kernel is one that torch does not count.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(tokens_BL)
    assert counter.get_total_flops() == 2 * 16 * forward_flops_per_token(config, length=16)


def test_training_operations_follow_six_n_plus_twelve_l_d_t():
    # arithmetic for width 8, 1 layer, 2 heads of 4, mlp 16, vocabulary 10, length 5:
    # matrices 4·8² + 3·8·16 + 10·8 = 720; 6·720 + 12·1·8·5 = 4800
    config = ModelConfig(vocabulary_size=10, width=8, layers=1, heads=2, kv_heads=2, mlp_width=16)
    assert training_flops_per_token(config, length=5) == 4800
