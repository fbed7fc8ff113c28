"""Message lists to render templates with: every length, role order and content that tends to go wrong."""

import random

CONTENTS = [
    "Hello", "", " ", "  spaced  ", "two\nlines\n", "\n\nleading", "trailing \t\n", "a 'quoted' word", 'a "quoted" word',
    "both ' and \"", "<b>html & co</b>", "back\\slash \\n", "{{ braces }} {% tags %} {# notes #}", "Grüße, Ελλάδα, мир",
    "日本語テキスト", "emoji 🙂 and 👩‍👩‍👧", "tab\tbed", "<think>hidden</think>shown", "<think>\nlong\nthought\n</think>\n\nanswer",
    "</think>", "a</think>b</think>c", "[INST] x [/INST]", "<|im_end|>", "100% {x} %s", "nbsp\u00a0here", "line\u2028sep",
    '{"key": "value"}', "[1, 2]", "x" * 300, "\x00nul", "\x7fdel", "e\u0301 combined", "\u200bzero width",
]

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city, e.g. \"Bern\" & <Basel>"},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": ["integer", "null"], "minimum": 1, "maximum": 14.5},
        "stops": {"type": "array", "items": {"type": "string"}},
        "options": {
            "type": "object",
            "properties": {"verbose": {"type": "boolean", "description": "größer"}, "values": {"type": "array", "items": {
                "type": "object", "properties": {"name": {"type": "number"}}, "required": ["name"]}}},
            "required": [],
        },
    },
    "required": ["city", "days"],
}

WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city.\nIn two lines.",
                                            "parameters": SCHEMA}}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "The time",
                                          "parameters": {"type": "object", "properties": {}}}}
SEARCH = {"type": "function", "function": {
    "name": "search", "description": "",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}, "items": {"type": "integer"}},
                   "required": ["query"]},
    "return": {"type": "array", "items": {"type": "object", "description": "hits"}}}}
TOOL_LISTS = [None, None, [], [CLOCK], [WEATHER], [WEATHER, CLOCK, SEARCH]]

ARGUMENTS = [
    {}, {"city": "Zürich"}, {"city": "Bern", "days": 3, "unit": None}, {"query": "a \"b\" <c>", "items": [1, 2.5, True]},
    {"options": {"verbose": False, "values": [{"name": 1e20}]}, "city": "x\ny"},
]


class Maker:
    """Random message lists, the same in every run."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def content(self):
        return self.random.choice(CONTENTS)

    def call(self, number):
        return {"id": f"call{number:05d}"[:9], "type": "function", "function": {
            "name": self.random.choice(["get_weather", "clock", "search"]), "arguments": self.random.choice(ARGUMENTS)}}

    def messages(self, length, with_tools):
        roles = ["user", "assistant"]
        start = self.random.random()
        result = []
        if start < 0.5 and length > 1:
            result.append({"role": "system", "content": self.content()})
        turn = 0
        while len(result) < length:
            if self.random.random() < 0.1:
                role = self.random.choice(["user", "assistant", "system", "tool", "developer", "other"])
            else:
                role = roles[turn % 2]
                turn += 1
            message = {"role": role, "content": self.content()}
            if role == "assistant" and with_tools and self.random.random() < 0.6:
                calls = [self.call(len(result) * 10 + i) for i in range(self.random.choice([1, 1, 2]))]
                message["tool_calls"] = calls
                message["content"] = self.random.choice(["", None, "I look it up."])
                if self.random.random() < 0.2:
                    del message["content"]
                result.append(message)
                for call in calls:
                    result.append({"role": "tool", "name": call["function"]["name"], "tool_call_id": call["id"],
                                   "content": self.random.choice(["21 °C", "{\"ok\": true}", "", "line\nline"])})
                continue
            if role == "assistant" and self.random.random() < 0.2:
                message["reasoning_content"] = self.content()
            if role == "user" and self.random.random() < 0.1:
                message["name"] = "Ann"
            result.append(message)
        return result[:max(length, 1)]

    def variables(self, length):
        with_tools = self.random.random() < 0.5
        variables = {
            "messages": self.messages(length, with_tools),
            "tools": self.random.choice(TOOL_LISTS) if with_tools else None,
            "documents": None,
            "add_generation_prompt": self.random.random() < 0.7,
            "bos_token": "<s>",
            "eos_token": "</s>",
        }
        if self.random.random() < 0.2:
            variables["documents"] = [{"title": "Doc", "text": self.content()}, {"title": "A & B", "text": "two\nlines"}]
        if self.random.random() < 0.3:
            variables["enable_thinking"] = self.random.random() < 0.5
        if self.random.random() < 0.1:
            variables["builtin_tools"] = ["code_interpreter", "brave_search"]
        return variables
