"""A small Qwen3 decoder for training, with the parameter names of Hugging Face's Qwen3ForCausalLM.

It differs from the official class only in what training needs: dropout on the embedding and on
what each block adds to the residual stream. export.py holds the weights against the official class.
"""
import math

import torch
from torch import nn
from torch.nn import functional as F

CONFIG = {  # Hugging Face's spelling; written into config.json as it stands
    "architectures": ["Qwen3ForCausalLM"],
    "attention_bias": False,
    "attention_dropout": 0.0,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 256,
    "initializer_range": 0.02,
    "intermediate_size": 640,
    "max_position_embeddings": 1024,
    "max_window_layers": 6,
    "model_type": "qwen3",
    "num_attention_heads": 4,
    "num_hidden_layers": 6,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 4096,
}


class RmsNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        x32 = x.float()
        scale = torch.rsqrt(x32.square().mean(-1, keepdim=True) + self.eps)
        return (x32 * scale * self.weight).to(x.dtype)


def rotate(x, cos, sin):
    """Half-split rotary embedding of x [B, H, T, E]; cos, sin [T, E/2]."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, e = c["hidden_size"], c["head_dim"]
        self.head_dim, self.n_heads, self.n_kv_heads = e, c["num_attention_heads"], c["num_key_value_heads"]
        self.q_proj = nn.Linear(d, self.n_heads * e, bias=False)
        self.k_proj = nn.Linear(d, self.n_kv_heads * e, bias=False)
        self.v_proj = nn.Linear(d, self.n_kv_heads * e, bias=False)
        self.o_proj = nn.Linear(self.n_heads * e, d, bias=False)
        self.q_norm = RmsNorm(e, c["rms_norm_eps"])
        self.k_norm = RmsNorm(e, c["rms_norm_eps"])

    def forward(self, x, cos, sin):
        n_seqs, n_tokens, _ = x.shape
        heads = lambda y: y.view(n_seqs, n_tokens, -1, self.head_dim).transpose(1, 2)
        q = rotate(self.q_norm(heads(self.q_proj(x))), cos, sin)
        k = rotate(self.k_norm(heads(self.k_proj(x))), cos, sin)
        v = heads(self.v_proj(x))
        repeat = self.n_heads // self.n_kv_heads
        k, v = k.repeat_interleave(repeat, dim=1), v.repeat_interleave(repeat, dim=1)
        y = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(n_seqs, n_tokens, -1))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, f = c["hidden_size"], c["intermediate_size"]
        self.gate_proj = nn.Linear(d, f, bias=False)
        self.up_proj = nn.Linear(d, f, bias=False)
        self.down_proj = nn.Linear(f, d, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c, dropout):
        super().__init__()
        self.self_attn, self.mlp = Attention(c), Mlp(c)
        self.input_layernorm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])
        self.post_attention_layernorm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cos, sin):
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), cos, sin))
        return x + self.dropout(self.mlp(self.post_attention_layernorm(x)))


class Trunk(nn.Module):
    def __init__(self, c, dropout):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c, dropout) for _ in range(c["num_hidden_layers"]))
        self.norm = RmsNorm(c["hidden_size"], c["rms_norm_eps"])
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids, cos, sin):
        x = self.dropout(self.embed_tokens(ids))
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.norm(x)


class Qwen3(nn.Module):
    def __init__(self, c, dropout=0.0):
        super().__init__()
        self.model = Trunk(c, dropout)
        half = torch.arange(0, c["head_dim"], 2).float() / c["head_dim"]
        angles = torch.outer(torch.arange(c["max_position_embeddings"]).float(), c["rope_theta"] ** -half)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.ndim == 2:
                shrink = math.sqrt(2 * c["num_hidden_layers"]) if "o_proj" in name or "down_proj" in name else 1
                nn.init.normal_(p, std=c["initializer_range"] / shrink)

    def forward(self, ids):
        """Logits [B, T, V] of ids [B, T]."""
        n = ids.shape[1]
        return F.linear(self.model(ids, self.cos[:n], self.sin[:n]), self.model.embed_tokens.weight)

    def loss(self, ids):
        """Mean cross-entropy, in nats, of each id given those before it."""
        logits = self(ids[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
