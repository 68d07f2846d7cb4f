"""Asks the `tokenizers` package what random text becomes, for the tests of engine/text.

  tokenizers_package.py OUT --texts N --random N --seed S [--deepseek tokenizer.json.gz]

OUT is JSON (gzip if it ends in .gz): "bases" (vocab and merges by name) and "vocabularies", each with
"name", "file" (a tokenizer.json whose vocab and merges are the name of a base; null: DeepSeek's),
"cases" (text, ids, whole: the ids with what the file adds, decoded: of ids) and "decoded" (ids drawn
at random, their text, and that without special tokens). The vocabularies are one for each component
that engine/text executes and `--random` mixtures of them.
tests/data/tokenizers/components.json.gz was made by
  tokenizers_package.py OUT.json.gz --texts 25 --random 12 --seed 1
"""

import argparse
import gzip
import json
import random

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

WORDS = (
    "the of and to in model cache latent tokens don't we'll I'm Hello, world! DeepSeek keeps it "
    "naïve café ﬁn ΑΒΓ αβγς Straße İstanbul ЁЛКА ёлка 你好，世界 模型 カタカナ ひらがな 안녕하세요 세계 "
    "नमस्ते สวัสดี שלום مرحبا ﷺ 1234567890 3.14 ½ ² ① Ⅳ x**2 def f(x): return a_b __init__ é e\u0301 "
    "😀 👩‍💻 🏳️‍🌈 ... !? -- <s> </s> <unk> [END] [end] <0x41> <0x> ▁ ▁▁a Å \u212b ｆｕｌｌ a\u0327\u0301"
).split()
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \n ", "\u3000", "\u00a0", "\u2009", "\u200b"]
BYTE_TOKENS = [f"<0x{b:02X}>" for b in range(256)]


def scalar(rng):
    """A code point of any kind, likelier one of the troublesome kinds."""
    kind = rng.randrange(12)
    if kind == 0:
        c = rng.randrange(0x110000)
    elif kind == 1:
        c = rng.randrange(0x10000)
    elif kind == 2:
        c = rng.randrange(0x300, 0x370)  # marks
    elif kind == 3:
        c = rng.choice([0x1100, 0x1161, 0x11A8, 0xAC00, 0xD7A3]) + rng.randrange(3)
    elif kind == 4:
        c = rng.randrange(0xF900, 0x10000)  # compatibility forms
    elif kind == 5:
        c = rng.randrange(0x900, 0x1800)
    elif kind == 6:
        c = rng.randrange(0x1E00, 0x2800)
    elif kind == 7:
        c = rng.choice([0x130, 0x3A3, 0x1C89, 0xA7CB, 0x10D50, 0x16EA0, 0x897, 0x1DF6, 0x32FF, 0x345])
    else:
        c = rng.randrange(0x20, 0x250)
    return chr(c) if not 0xD800 <= c < 0xE000 else "\ufffd"


def text_of(rng):
    out = []
    for _ in range(rng.choice([0, 1, 2, 3, 5, 8, 13, 21, 34])):
        kind = rng.randrange(8)
        if kind < 3:
            out.append(rng.choice(WORDS))
        elif kind < 5:
            out.append(rng.choice(SPACES))
        elif kind == 5:
            out.append(scalar(rng) * rng.choice([1, 1, 1, 2, 3, 9]))
        else:
            out.append("".join(scalar(rng) for _ in range(rng.randrange(6))))
        if rng.randrange(3) == 0:
            out.append(" ")
    return "".join(out)


def trained(pre_tokenizer, size, **options):
    """vocab and merges of a small BPE model over WORDS."""
    tokenizer = Tokenizer(models.BPE())
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    rng = random.Random(5)
    lines = [" ".join(rng.choice(WORDS) for _ in range(12)) for _ in range(300)]
    if options.pop("metaspace", False):
        lines = ["▁" + line.replace(" ", "▁") for line in lines]
    tokenizer.train_from_iterator(
        lines, trainers.BpeTrainer(vocab_size=size, show_progress=False, **options))
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], model["merges"]


def model(base, **options):
    vocab, merges = base
    out = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
           "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
           "ignore_merges": False, "vocab": vocab, "merges": merges}
    out.update(options)
    return out


BYTES = trained(pre_tokenizers.ByteLevel(add_prefix_space=False), 420, special_tokens=["<s>", "</s>"],
                initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
CHARACTERS = trained(None, 620, metaspace=True, special_tokens=["<unk>", "<s>", "</s>"] + BYTE_TOKENS)
FEW_BYTES = ({t: i for i, t in enumerate(
    t for t in CHARACTERS[0] if t not in BYTE_TOKENS[0x90:])}, CHARACTERS[1])
PREFIXED = trained(pre_tokenizers.WhitespaceSplit(), 300, continuing_subword_prefix="##",
                   special_tokens=["[UNK]"])
SUFFIXED = trained(pre_tokenizers.WhitespaceSplit(), 300, end_of_word_suffix="</w>",
                   special_tokens=["[UNK]"])

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
PLAIN_BYTES = dict(BYTE_LEVEL, use_regex=False)
SPACED_BYTES = dict(BYTE_LEVEL, add_prefix_space=True)
LLAMA_DECODER = {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"},
    {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
LLAMA_NORMALIZER = {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
LLAMA_MODEL = dict(unk_token="<unk>", fuse_unk=True, byte_fallback=True)


def metaspace(scheme, split=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def split(pattern, behavior="Isolated", invert=False, literal=False):
    return {"type": "Split", "pattern": {"String" if literal else "Regex": pattern},
            "behavior": behavior, "invert": invert}


def sequence(key, steps):
    return {"type": "Sequence", key: steps}


def frame(before, after, vocab):
    tokens = before + after
    piece = lambda t, i=0: {"SpecialToken": {"id": t, "type_id": i}}
    return {"type": "TemplateProcessing",
            "single": [piece(t) for t in before] + [{"Sequence": {"id": "A", "type_id": 0}}] +
                      [piece(t) for t in after],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {t: {"id": t, "ids": [vocab[t]], "tokens": [t]} for t in tokens}}


def added(vocab, tokens):
    """Added tokens: content, or content and the flags that are set."""
    out, next_id = [], max(vocab.values()) + 1
    for token in tokens:
        content, flags = (token, []) if isinstance(token, str) else (token[0], token[1:])
        known = vocab.get(content)
        out.append(dict({"id": next_id if known is None else known, "content": content,
                         "single_word": False, "lstrip": False, "rstrip": False,
                         "normalized": False, "special": False}, **{f: True for f in flags}))
        next_id += known is None
    return sorted(out, key=lambda t: t["id"])


def whole(model, decoder, normalizer=None, pre=None, post=None, tokens=()):
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": added(model["vocab"], tokens), "normalizer": normalizer,
            "pre_tokenizer": pre, "post_processor": post, "decoder": decoder, "model": model}


SPECIAL = [("<s>", "special"), ("</s>", "special")]
# Of each kind of flag; two or more that may touch.
FLAGGED = SPECIAL + [("[END]", "normalized"), ("▁▁a", "lstrip"), ("def", "single_word"),
                     ("cache", "rstrip", "normalized"), ("ﬁn", "lstrip", "normalized", "special")]

# GLM's and Llama 3's expression, and a part of Kimi's.
LLAMA3_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
                  r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
KIMI_PATTERN = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
                r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|"
                r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
V2_STEPS = [split(r"[\r\n]"), split(r"\s?[A-Za-zµÀ-ÖØ-öø-ƺΑ-Ρα-ωА-ӿ]+"), split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"),
            split(r"\s+$"), split(r"[一-龥ࠀ-一가-퟿]+"),
            {"type": "Digits", "individual_digits": True}, PLAIN_BYTES]

NORMALIZERS = [
    {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"},
    {"type": "StripAccents"}, {"type": "Strip", "strip_left": True, "strip_right": False},
    {"type": "Strip", "strip_left": False, "strip_right": True},
    {"type": "Prepend", "prepend": "▁"}, {"type": "Prepend", "prepend": "x "},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    {"type": "Replace", "pattern": {"Regex": r" {2,}"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": r"\p{N}+"}, "content": ""},
    {"type": "Replace", "pattern": {"String": "e"}, "content": "E\u0301"},
]
SPLITS = [split(p, b, i, l) for p, l in ((r"\s+", False), (r"\p{P}", False), ("-", True))
          for b in ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
          for i in (False, True)]
PRE_TOKENIZERS = SPLITS + [
    {"type": "Digits", "individual_digits": True}, {"type": "Digits", "individual_digits": False},
    {"type": "WhitespaceSplit"}, {"type": "CharDelimiterSplit", "delimiter": "."},
    metaspace("always"), metaspace("first"), metaspace("never"), metaspace("always", False),
    metaspace("first", False), split(LLAMA3_PATTERN), split(KIMI_PATTERN, "Removed", True)]
DECODER_STEPS = [
    {"type": "ByteFallback"}, {"type": "Fuse"}, BYTE_LEVEL, metaspace("always"), metaspace("never"),
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "Replace", "pattern": {"Regex": "[aeiou]+"}, "content": "-"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    {"type": "Strip", "content": "▁", "start": 2, "stop": 0}]


def fixed():
    """One vocabulary or more for each component."""
    byte_model = model(BYTES)
    llama = model(CHARACTERS, **LLAMA_MODEL)
    for step in NORMALIZERS:
        yield f"normalizer {json.dumps(step)}", whole(llama, LLAMA_DECODER, step, None, None, FLAGGED)
    for step in PRE_TOKENIZERS:
        yield f"pre-tokenizer {json.dumps(step)}", whole(
            byte_model, BYTE_LEVEL, None, sequence("pretokenizers", [step, PLAIN_BYTES]), None, FLAGGED)
    yield "byte level", whole(byte_model, BYTE_LEVEL, None, BYTE_LEVEL, None, SPECIAL)
    yield "byte level, space", whole(byte_model, BYTE_LEVEL, None, SPACED_BYTES, BYTE_LEVEL, FLAGGED)
    yield "byte level normalizer", whole(byte_model, BYTE_LEVEL, {"type": "ByteLevel"}, None, None, SPECIAL)
    yield "deepseek v2 style", whole(
        byte_model, BYTE_LEVEL, sequence("normalizers", []), sequence("pretokenizers", V2_STEPS),
        BYTE_LEVEL, SPECIAL)
    yield "llama 3 style", whole(
        model(BYTES, ignore_merges=True), BYTE_LEVEL, None,
        sequence("pretokenizers", [split(LLAMA3_PATTERN), PLAIN_BYTES]),
        sequence("processors", [BYTE_LEVEL, frame(["<s>"], [], BYTES[0])]), SPECIAL)
    yield "llama 2 style", whole(llama, LLAMA_DECODER, LLAMA_NORMALIZER, None,
                                 frame(["<s>"], ["</s>"], CHARACTERS[0]),
                                 [("<unk>", "special")] + SPECIAL)
    for scheme in ("always", "first", "never"):
        decoder = sequence("decoders", [{"type": "ByteFallback"}, metaspace(scheme)])
        yield f"metaspace {scheme}", whole(llama, decoder, None, metaspace(scheme), None, FLAGGED)
        yield f"metaspace {scheme} whole", whole(
            llama, metaspace(scheme), {"type": "NFKC"},
            sequence("pretokenizers", [{"type": "WhitespaceSplit"}, metaspace(scheme, False)]), None, FLAGGED)
    for fuse in (False, True):
        for fallback in (False, True):
            options = dict(unk_token="<unk>", fuse_unk=fuse, byte_fallback=fallback)
            yield f"unknown {options}", whole(model(FEW_BYTES, **options), LLAMA_DECODER, None, None, None, SPECIAL)
    yield "no unknown", whole(model(FEW_BYTES), LLAMA_DECODER, LLAMA_NORMALIZER, None, None, SPECIAL)
    yield "merges ignored", whole(model(CHARACTERS, ignore_merges=True, **LLAMA_MODEL), LLAMA_DECODER,
                                  None, metaspace("first"), None, SPECIAL)
    for name, base in (("continuing_subword_prefix", PREFIXED), ("end_of_word_suffix", SUFFIXED)):
        value = "##" if base is PREFIXED else "</w>"
        yield name, whole(model(base, unk_token="[UNK]", **{name: value}),
                          {"type": "Replace", "pattern": {"String": value}, "content": ""},
                          None, {"type": "WhitespaceSplit"})
    for step in DECODER_STEPS:
        yield f"decoder {json.dumps(step)}", whole(llama, step, LLAMA_NORMALIZER, None, None, SPECIAL)


def mixed(rng):
    """Components drawn at random."""
    byte_level = rng.randrange(2) == 0
    base = BYTES if byte_level else rng.choice([CHARACTERS, CHARACTERS, FEW_BYTES])
    options = dict(fuse_unk=rng.randrange(2) == 0, ignore_merges=rng.randrange(3) == 0)
    if not byte_level:
        options["byte_fallback"] = rng.randrange(3) != 0
        options["unk_token"] = rng.choice(["<unk>", None])
    draw = lambda steps, most: [rng.choice(steps) for _ in range(rng.randrange(most + 1))]
    pre = draw(PRE_TOKENIZERS, 3)
    if byte_level:
        pre.insert(rng.randrange(len(pre) + 1) if rng.randrange(3) == 0 else len(pre),
                   rng.choice([PLAIN_BYTES, BYTE_LEVEL, SPACED_BYTES]))
    nested = rng.randrange(2) == 0
    steps = [sequence("pretokenizers", pre)] if nested else pre
    vocab = base[0]
    post = rng.choice([None, BYTE_LEVEL, frame(["<s>"], [], vocab), frame([], ["</s>"], vocab)])
    return whole(model(base, **options), sequence("decoders", draw(DECODER_STEPS, 4) + [rng.choice(DECODER_STEPS)]),
                 sequence("normalizers", draw(NORMALIZERS, 3)), sequence("pretokenizers", steps), post,
                 rng.choice([SPECIAL, FLAGGED]))


BASES = {"bytes": BYTES, "characters": CHARACTERS, "few bytes": FEW_BYTES, "prefixed": PREFIXED,
         "suffixed": SUFFIXED}


def with_base_named(file):
    name = next(n for n, base in BASES.items() if base[0] is file["model"]["vocab"])
    return dict(file, model=dict(file["model"], vocab=name, merges=name))


def answers(name, file, texts, rng):
    tokenizer = file if isinstance(file, Tokenizer) else Tokenizer.from_str(json.dumps(file))
    lines = [text_of(rng) for _ in range(texts)]
    bare = [e.ids for e in tokenizer.encode_batch(lines, add_special_tokens=False)]
    framed = [e.ids for e in tokenizer.encode_batch(lines, add_special_tokens=True)]
    cases = [{"text": t, "ids": i, "whole": w, "decoded": tokenizer.decode(i, skip_special_tokens=False)}
             for t, i, w in zip(lines, bare, framed)]
    ids = sorted(tokenizer.get_vocab().values())
    drawn = [[rng.choice(ids) for _ in range(rng.randrange(12))] for _ in range(texts // 4)]
    decoded = [{"ids": i, "text": tokenizer.decode(i, skip_special_tokens=False),
                "plain": tokenizer.decode(i, skip_special_tokens=True)} for i in drawn]
    named = None if isinstance(file, Tokenizer) else with_base_named(file)
    return {"name": name, "file": named, "cases": cases, "decoded": decoded}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--texts", type=int, default=25)
    parser.add_argument("--random", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--deepseek")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    all_answers = []
    if options.deepseek:
        big = Tokenizer.from_str(gzip.open(options.deepseek, "rt", encoding="utf-8").read())
        all_answers.append(answers("deepseek", big, options.texts * 10, rng))
    for name, file in fixed():
        all_answers.append(answers(name, file, options.texts, rng))
    for i in range(options.random):
        all_answers.append(answers(f"mixture {i}", mixed(rng), options.texts, rng))
    bases = {name: {"vocab": base[0], "merges": base[1]} for name, base in BASES.items()}
    data = json.dumps({"bases": bases, "vocabularies": all_answers}, ensure_ascii=False).encode()
    with open(options.out, "wb") as out:
        out.write(gzip.compress(data, mtime=0) if options.out.endswith(".gz") else data)


main()
