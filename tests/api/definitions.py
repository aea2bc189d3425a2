"""Validates the API description and every compiled tool definition against their specifications.

    definitions.py URL
"""

import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
SHAPES = ("mcp", "openai", "anthropic", "openapi")


def get(address):
    with urllib.request.urlopen(address, timeout=30) as answer:
        return json.load(answer)


def definition(url, capability, shape):
    """The definition, or None if the API rejects it with a reason."""
    try:
        return get(f"{url}/capabilities/{capability}/tool?as={shape}")
    except urllib.error.HTTPError as error:
        if error.code == 422 and json.load(error)["detail"]:
            return None
        raise


def check(shape, tool):
    """Raises if a definition is invalid for its runtime; returns its name."""
    if shape == "openapi":
        validate(tool)
        (item,) = tool["paths"].values()
        (operation,) = item.values()
        return operation["operationId"]
    tool = tool["function"] if shape == "openai" else tool
    schema = tool[{"mcp": "inputSchema", "openai": "parameters", "anthropic": "input_schema"}[shape]]
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object", schema
    assert len(tool["description"]) <= 1024, tool
    return tool["name"]


def capabilities(url):
    """The ids of all capabilities, from the export."""
    with urllib.request.urlopen(f"{url}/export.jsonl", timeout=60) as answer:
        lines = [json.loads(line) for line in answer]
    assert lines[-1]["record"] == "end", "the export broke off"
    return [line["id"] for line in lines if line["record"] == "capability"]


def main(url):
    validate(get(f"{url}/openapi.json"))
    checked, refused, names = 0, 0, {}
    for capability in capabilities(url):
        for shape in SHAPES:
            tool = definition(url, capability, shape)
            if tool is None:
                refused += 1
                continue
            name = check(shape, tool)
            assert NAME.match(name), name
            assert names.setdefault(name, capability) == capability, f"{name} is not unique"
            checked += 1
    assert checked > 100, f"only {checked} definitions"
    print(f"definitions: {checked} sound, {refused} refused with a reason, {len(names)} names")


main(sys.argv[1])
