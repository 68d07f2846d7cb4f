"""Renders conversations with published chat templates, for tests/data/templates/goldens.json.gz.

  render_templates.py FOLDER OUT.json.gz

FOLDER holds one NAME.jinja for each template, as its publisher has it: the texts are not ours and not
in this repository, but for DeepSeek-V3's (tests/data/tokenizer/tokenizer_config.json). They are run
as transformers runs them. OUT is a list of {template, thinking, generation_prompt, input, text}, where
input is a messages file; what a template cannot render is left out.
"""

import gzip
import json
import pathlib
import random
import sys

from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

BOS, EOS = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "天气 <of> a \"city\"", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "enum": [1, 2.5]}},
        "required": []}}}, {"type": "function", "function": {"name": "now", "parameters": {}}}]
TEXTS = ["Hello", "1+1=?", "", "你好，世界", "a\n\nb ", "  x", "<think>hm</think>y", "q</think>\n\nr</think>s",
         "<think>\nopen", "</think>", "tail\n"]


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: (
        json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys))
    return env


def call(rng, index):
    name = rng.choice(["get_weather", "now"])
    arguments = rng.choice([{"city": "東京", "days": 2}, {}, {"deep": {"a": [1, None, True]}, "s": "x \"y\""}])
    return {"id": f"functions.{name}:{index}", "type": "function",
            "function": {"name": name, "arguments": arguments}}


def conversation(rng, tools):
    messages = []
    for _ in range(rng.choice([0, 1, 1, 2])):
        messages.append({"role": "system", "content": rng.choice(TEXTS)})
    for _ in range(rng.randrange(1, 4)):
        messages.append({"role": "user", "content": rng.choice(TEXTS)})
        if tools and rng.randrange(2):
            calls = [call(rng, i) for i in range(rng.randrange(1, 4))]
            content = rng.choice([None, None, "I look.", "<think>w</think>I look."])
            messages.append({"role": "assistant", "content": content, "tool_calls": calls})
            for one in calls:
                result = {"role": "tool", "content": rng.choice(TEXTS), "tool_call_id": one["id"]}
                if rng.randrange(2):
                    result["name"] = one["function"]["name"]
                messages.append(result)
        if rng.randrange(4):
            answer = {"role": "assistant", "content": rng.choice(TEXTS)}
            if rng.randrange(2):
                answer["reasoning_content"] = rng.choice(TEXTS)
            messages.append(answer)
        if rng.randrange(8) == 0:
            messages.append({"role": "system", "content": rng.choice(TEXTS)})
    return messages


def arguments_as_text(messages):
    """As DeepSeek's templates and the wire have them."""
    copy = json.loads(json.dumps(messages))
    for message in copy:
        for one in message.get("tool_calls") or []:
            one["function"]["arguments"] = json.dumps(one["function"]["arguments"], ensure_ascii=False)
    return copy


def main():
    folder, out = pathlib.Path(sys.argv[1]), sys.argv[2]
    goldens = []
    for path in sorted(folder.glob("*.jinja")):
        name = path.stem
        template = environment().from_string(path.read_text(encoding="utf-8"))
        rng = random.Random(name)
        for i in range(60):
            tools = name != "deepseek-v2" and rng.randrange(2) == 0
            messages = conversation(rng, tools)
            definitions = TOOLS if tools and not name.startswith("deepseek") and rng.randrange(2) else None
            shown = messages if name == "glm-4.7" else arguments_as_text(messages)
            thinking = rng.choice([None, False, True])
            generation = rng.randrange(4) != 0
            variables = {} if thinking is None else {"thinking": thinking, "enable_thinking": thinking}
            if name == "glm-4.7":  # its text shows a null content as "None"
                shown = [dict(m, content=m["content"] or "") for m in shown]
            try:
                text = template.render(messages=shown, tools=definitions, add_generation_prompt=generation,
                                       bos_token=BOS, eos_token=EOS, **variables)
            except Exception as error:
                print(name, i, error)
                continue
            request = {"messages": messages}
            if definitions:
                request["tools"] = definitions
            goldens.append({"template": name, "thinking": thinking, "generation_prompt": generation,
                            "input": request, "text": text})
    data = json.dumps(goldens, ensure_ascii=False).encode()
    pathlib.Path(out).write_bytes(gzip.compress(data, mtime=0))
    print(len(goldens), "goldens")


main()
