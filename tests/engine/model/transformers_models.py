"""Makes random small checkpoints and asks `transformers` for their logits, for the tests of engine/model.

  transformers_models.py OUT --models N --seed S

Writes N folders OUT/0, OUT/1, ... as `save_pretrained` writes them, each with expected.safetensors:
"prompt.I" (int32 ids) and "logits.I" (fp32, at every position). Shapes are drawn to be awkward: head
counts that are no power of two, a nope part unlike the value part, ranks that fill no block, deep
dense prefixes, routing by groups or without, YaRN with an mscale unlike mscale_all_dim, tied heads.
"""

import argparse
import os
import random

import torch
import transformers
from safetensors.torch import save_file

PROMPT_TOKENS = (1, 37, 150)


def rope_parameters(rng, v2):
    theta = rng.choice([10000.0, 50000.0, 1000000.0])
    if rng.random() < 0.35:
        return {"rope_type": "default", "rope_theta": theta}
    return {
        "rope_type": "yarn",
        "rope_theta": theta,
        "factor": rng.choice([2.0, 4.0, 40.0]),
        "original_max_position_embeddings": rng.choice([32, 64]),
        "beta_fast": rng.choice([32, 16, 1]),
        "beta_slow": 1,
        "mscale": rng.choice([1.0, 0.707, 0.5]),
        "mscale_all_dim": rng.choice([1.0, 0.707, 0.8]),
    }


def routing(rng, v2):
    groups = rng.choice([1, 1, 2, 4])
    experts = groups * rng.choice([2, 3, 5])
    topk_group = rng.randint(1, groups)
    fields = {
        "n_routed_experts": experts,
        "n_group": groups,
        "topk_group": topk_group,
        "num_experts_per_tok": rng.randint(1, min(4, topk_group * (experts // groups))),
        "n_shared_experts": rng.choice([1, 2]),
        "moe_intermediate_size": rng.choice([24, 40, 72]),
        "routed_scaling_factor": rng.choice([1.0, 1.5, 2.446]),
    }
    if v2:
        fields["topk_method"] = "group_limited_greedy" if groups > 1 else "greedy"
        fields["norm_topk_prob"] = False
    else:
        fields["norm_topk_prob"] = True
    return fields


def random_model(rng):
    kind = rng.choice(["v2", "v2", "v3", "v3", "glm", "youtu"])
    v2 = kind == "v2"
    layers = rng.randint(2, 5)
    heads = rng.choice([1, 3, 5, 6, 7, 12])
    fields = {
        "vocab_size": rng.randint(65, 300),
        "hidden_size": heads * -(-rng.choice([48, 64, 100, 136]) // heads),  # transformers wants a multiple
        "intermediate_size": rng.choice([88, 130, 200]),
        "num_hidden_layers": layers,
        "first_k_dense_replace": rng.randint(0, layers),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "q_lora_rank": rng.choice([None, 20, 36]),
        "kv_lora_rank": rng.choice([16, 40, 64]),
        "qk_nope_head_dim": rng.choice([8, 24, 48]),
        "qk_rope_head_dim": rng.choice([8, 16, 32]),
        "v_head_dim": rng.choice([12, 24, 40]),
        "rms_norm_eps": rng.choice([1e-6, 1e-5]),
        "tie_word_embeddings": rng.random() < 0.3,
        "max_position_embeddings": 512,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "rope_parameters": rope_parameters(rng, v2),
    }
    if kind != "youtu":
        fields.update(routing(rng, v2))
    if kind == "v2":
        config = transformers.DeepseekV2Config(**fields)
    elif kind == "v3":
        config = transformers.DeepseekV3Config(rope_interleave=True, **fields)
    elif kind == "glm":
        first = fields.pop("first_k_dense_replace")
        fields["mlp_layer_types"] = ["dense"] * first + ["sparse"] * (layers - first)
        config = transformers.Glm4MoeLiteConfig(rope_interleave=True, **fields)
    else:
        del fields["first_k_dense_replace"]
        config = transformers.YoutuConfig(rope_interleave=True, **fields)
    config._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", experts_implementation="eager"
    ).float().eval()
    with torch.no_grad():
        for name, value in list(model.named_parameters()) + list(model.named_buffers()):
            if "inv_freq" in name:
                continue
            if "norm" in name:
                value.copy_(1 + 0.1 * torch.randn_like(value))
            elif "correction_bias" in name:
                value.copy_(0.1 * torch.randn_like(value))
            elif value.is_floating_point() and value.dim() > 1:
                value.copy_(torch.randn_like(value) / value.shape[-1] ** 0.5)
    if rng.random() < 0.5:  # stored in bf16, computed in fp32 from what is stored
        with torch.no_grad():
            for name, value in list(model.named_parameters()):
                value.copy_(value.to(torch.bfloat16).float())
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--models", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    for i in range(args.models):
        rng = random.Random(args.seed * 1000 + i)
        torch.manual_seed(args.seed * 1000 + i)
        model = random_model(rng)
        folder = os.path.join(args.out, str(i))
        model.save_pretrained(folder)
        expected = {}
        for p, length in enumerate(PROMPT_TOKENS):
            ids = torch.randint(0, model.config.vocab_size, (length,))
            with torch.no_grad():
                logits = model(ids[None]).logits[0]
            expected[f"prompt.{p}"] = ids.to(torch.int32)
            expected[f"logits.{p}"] = logits.float().contiguous()
        save_file(expected, os.path.join(folder, "expected.safetensors"))
        print(i, model.config.model_type, model.config.num_attention_heads, "heads", flush=True)


main()
