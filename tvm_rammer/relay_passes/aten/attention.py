"""The operators into which PyTorch joins a whole attention or encoder layer for inference, in simpler ones again."""

from typing import Any


def native_multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:
    """`aten._native_multi_head_attention` without a mask, as the reference has it (Vaswani et al., NeurIPS 2017).

    Parameters
    ----------
    query, key, value : torch.Tensor
        `[batch, length, embed_dim]`.
    qkv_weight : torch.Tensor
        `[3 * embed_dim, embed_dim]`: the projections of queries, keys and values, one below the other.

    Returns
    -------
    tuple of (torch.Tensor, torch.Tensor or None)
        `[batch, length, embed_dim]`, and the weights of the attention if they are needed.
    """
    import torch
    from torch.nn.functional import linear

    if mask is not None:
        return NotImplemented
    biases = qkv_bias.chunk(3) if qkv_bias is not None else (None, None, None)
    parts = zip((query, key, value), qkv_weight.chunk(3), biases, strict=True)
    q, k, v = (linear(x, w, b).unflatten(-1, (num_head, -1)).transpose(1, 2) for x, w, b in parts)
    scores = torch.matmul(q, k.transpose(-2, -1)) * (embed_dim // num_head) ** -0.5
    weights = torch.softmax(scores, -1)
    result = linear(torch.matmul(weights, v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return result, None
    return result, weights.mean(1) if average_attn_weights else weights


def transformer_encoder_layer(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """`aten._transformer_encoder_layer_fwd` without a mask: attention, then two linear layers, both with a norm.

    Parameters
    ----------
    src : torch.Tensor
        `[batch, length, embed_dim]`, and so is the result.
    norm_first : bool
        Whether each half normalises what comes in rather than its sum with that.
    """
    from torch.nn.functional import gelu, layer_norm, linear, relu

    if mask is not None:
        return NotImplemented

    def first(x: Any) -> Any:
        return layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: Any) -> Any:
        return layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    x = first(src) if norm_first else src
    attended, _ = native_multi_head_attention(
        x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, need_weights=False
    )
    attended = attended + src if norm_first else first(attended + src)
    hidden = linear(second(attended) if norm_first else attended, ffn_weight_1, ffn_bias_1)
    result = linear(gelu(hidden) if use_gelu else relu(hidden), ffn_weight_2, ffn_bias_2) + attended
    return result if norm_first else second(result)
