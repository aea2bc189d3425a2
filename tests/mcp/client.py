"""Tests a running demo: MCP with every tool by its official SDK, in two protocol versions, over HTTP and standard streams; the card of A2A by
its SDK; and the routes of the MCP registry as Copilot uses them."""

import asyncio
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from a2a.client.card_resolver import parse_agent_card
from a2a.utils.signing import SignatureVerificationError, create_signature_verifier
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from jsonschema import Draft202012Validator
from jwt import PyJWKSet
from mcp import Client, StdioServerParameters

AGENTDEX = os.environ["AGENTDEX"]
CURRENT, BEFORE = "2026-07-28", "2025-11-25"
TOOLS = ["explore", "find_capability", "get_capability", "get_site", "registry_stats", "submit_site", "validate_manifest"]
# About four thousand tokens, plus the overhead of JSON-RPC.
ANSWER_BYTES_MAX = 20_000
# Ten times the maximum delay between a commit of the index and its use by the API.
CATCH_UP_TRIES = 100
CATCH_UP_PAUSE_S = 0.1
passed = 0


def check(condition, what):
    global passed
    if not condition:
        sys.exit(f"FAILED: {what}")
    passed += 1


def start_demo(directory):
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pathlib.Path(directory, "card-key.pem").write_bytes(pem)
    settings = pathlib.Path(directory, "agentdex.toml")
    settings.write_text(f'[api]\npublic_url = "https://dex.example"\ncard_key = "{directory}/card-key.pem"\n')
    process = subprocess.Popen(
        [AGENTDEX, "demo", "--config", settings, "--data-dir", directory, "--listen", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    url = None
    for line in process.stdout:
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        url = url or (found and found.group())
        if "Everything found is in the index" in line:
            return process, url
    sys.exit("FAILED: the demo ended before it was ready")


async def call(client, tools, name, arguments):
    """Calls a tool; checks that the result matches its output schema and the size limit."""
    result = await client.call_tool(name, arguments)
    check(not result.is_error, f"{name}({arguments}) was refused: {result.content}")
    answer = result.structured_content
    Draft202012Validator(tools[name].output_schema).validate(answer)
    check(len(json.dumps(answer)) < ANSWER_BYTES_MAX, f"{name}({arguments}) is too long")
    check(json.loads(result.content[0].text) == answer, f"{name} says one thing in words and another in structure")
    return answer


async def use_every_tool(client, version):
    check(client.protocol_version == version, f"negotiated {client.protocol_version}, wanted {version}")
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    check(sorted(tools) == TOOLS, f"tools are {sorted(tools)}")
    for tool in tools.values():
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema)
        check(tool.annotations.read_only_hint == (tool.name != "submit_site"), f"{tool.name} is annotated wrongly")

    found = await call(client, tools, "find_capability", {"query": "book a flight"})
    check(1 <= len(found["results"]) <= 8 and not found["nothing_good"], "five to eight rows are the default")
    first = found["results"][0]
    check("flight" in json.dumps(first).lower(), f"the first row is {first}")
    check("parameters" not in first and "untrusted" in found["text_is"], "rows are compact and marked")
    full = await call(client, tools, "find_capability", {"query": "book a flight", "include_schemas": True, "max_results": 2})
    check(len(full["results"]) == 2 and "parameters" in full["results"][0], "schemas come on request")
    nothing = await call(client, tools, "find_capability", {"query": "photosynthesis of xylem zygotes"})
    check(nothing["nothing_good"] and not nothing["results"] and nothing["advice"], "nothing good is not padded")
    reads = await call(client, tools, "find_capability", {"query": "search", "safety": ["read"], "max_results": 20})
    check({row["safety"] for row in reads["results"]} == {"read"}, "a filter restricts")

    whole = await call(client, tools, "get_capability", {"id": first["id"]})
    check(whole["id"] == first["id"] and "untrusted" in whole["text_is"], "one capability is told whole")
    facets = (await call(client, tools, "explore", {"by": ["format", "site"]}))["facets"]
    check(any(value["value"] == "awp" for value in facets["format"]["values"]), "the dialects are counted")
    site = await call(client, tools, "get_site", {"domain": first["site"]})
    check(site["manifests"] and site["site"] == first["site"], "a site is told")
    stats = await call(client, tools, "registry_stats", {})
    for _ in range(CATCH_UP_TRIES):
        if stats["index_is_current"]:
            break
        await asyncio.sleep(CATCH_UP_PAUSE_S)
        stats = await call(client, tools, "registry_stats", {})
    check(stats["capabilities"] > 20 and stats["index_is_current"], f"the numbers are {stats}")
    judged = await call(client, tools, "validate_manifest", {"document": '{"awp_version": "0.1", "actions": []}'})
    check(judged["format"] == "awp" and judged["findings_by_severity"]["must"] >= 1, f"judged {judged}")

    for name, arguments in [
        ("find_capability", {}),
        ("find_capability", {"query": "x", "max_results": 1000}),
        ("find_capability", {"query": "x", "colour": "red"}),
        ("get_capability", {"id": "c0000000000000000"}),
        ("get_site", {"domain": "http://127.0.0.1/"}),
        ("validate_manifest", {"url": "https://never-crawled.example/agent.json"}),
        ("submit_site", {"domain": "127.0.0.1"}),
    ]:
        result = await client.call_tool(name, arguments)
        check(result.is_error and len(result.content[0].text) > 20, f"{name}({arguments}) was not refused in words")


async def submit_twice(client):
    """A site can be submitted once in ten minutes, by all clients together."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    answer = await call(client, tools, "submit_site", {"domain": "newcomer.example"})
    check(answer["outcome"] == "added" and answer["status_url"].endswith("/sites/newcomer.example"), f"submitted {answer}")
    again = await client.call_tool("submit_site", {"domain": "newcomer.example"})
    check(again.is_error and "can be requested in" in again.content[0].text, f"a second time: {again.content}")


def refused_by(url, headers):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).encode()
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def verify_card(url):
    """The card, read as a card of A2A 1.0 by its own SDK, has a signature by a key of the set that it names."""
    read = lambda path: json.load(urllib.request.urlopen(url + path, timeout=10))
    keys = PyJWKSet.from_dict(read("/.well-known/jwks.json"))
    card = parse_agent_card(read("/.well-known/agent-card.json"))
    check([one.protocol_version for one in card.supported_interfaces] == ["1.0", "0.3"], f"interfaces of {card}")
    verify = create_signature_verifier(lambda kid, jku: keys[kid], ["EdDSA"])
    verify(card)
    card.skills[0].name = "Changed"
    try:
        verify(card)
    except SignatureVerificationError:
        return check(True, "")
    sys.exit("FAILED: a changed card was verified")


def use_registry_as_copilot(url):
    """Copilot and VS Code read the list of servers from a page of another origin, then each configured server by its name."""
    origin = "https://vscode.example"

    def read(path, method="GET", **headers):
        request = urllib.request.Request(url + path, method=method, headers={"origin": origin, **headers})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def read_json(path):
        status, headers, body = read(path)
        check(status == 200 and headers["access-control-allow-origin"] == "*", f"{path}: {status} {headers}")
        return json.loads(body)

    preflight = {"access-control-request-method": "GET", "access-control-request-headers": "authorization"}
    status, headers, _ = read("/v0.1/servers", "OPTIONS", **preflight)
    check(status in (200, 204) and "GET" in headers["access-control-allow-methods"], f"preflight: {status} {headers}")
    servers, cursor = [], None
    while True:
        page = read_json("/v0.1/servers?limit=2&version=latest" + (f"&cursor={urllib.parse.quote(cursor)}" if cursor else ""))
        check(page["metadata"]["count"] == len(page["servers"]) <= 2, f"metadata of {page}")
        servers += page["servers"]
        cursor = page["metadata"].get("nextCursor")
        if not cursor:
            break
    names = [one["server"]["name"] for one in servers]
    check(names and len(set(names)) == len(names), f"names are {names}")
    for one in servers:
        server = one["server"]
        check(server["remotes"] and all(remote["url"].startswith("http") for remote in server["remotes"]), f"remotes of {server}")
        path = f"/v0.1/servers/{urllib.parse.quote(server['name'], safe='')}/versions"
        check(read_json(f"{path}/latest") == one, f"the latest version of {server['name']} is another")
        check(read_json(f"{path}/{urllib.parse.quote(server['version'], safe='')}") == one, f"{server['name']} {server['version']}")
        check(one in read_json(path)["servers"], f"versions of {server['name']}")
    part = names[0].split("/")[1]
    found = read_json(f"/v0.1/servers?search={urllib.parse.quote(part.upper())}")
    check(names[0] in [one["server"]["name"] for one in found["servers"]], f"a search for {part} finds {found}")
    for unknown in ["github", "example.nobody%2Fnothing"]:
        status, headers, body = read(f"/v0.1/servers/{unknown}/versions/latest")
        check(status == 404 and json.loads(body)["error"], f"{unknown}: {status} {body}")
        check(headers["access-control-allow-origin"] == "*", f"{unknown}: {headers}")


async def main():
    directory = tempfile.mkdtemp(prefix="agentdex-mcp-")
    demo, url = start_demo(directory)
    try:
        verify_card(url)
        use_registry_as_copilot(url)
        for mode, version in [("auto", CURRENT), (CURRENT, CURRENT), ("legacy", BEFORE)]:
            async with Client(f"{url}/mcp", mode=mode) as client:
                # a client that assumes a version without negotiating it never receives the instructions
                if mode == "auto":
                    check("untrusted" in client.instructions, "the instructions do not warn of publishers' words")
                await use_every_tool(client, version)
        async with Client(f"{url}/mcp") as client:
            await submit_twice(client)
        check(refused_by(f"{url}/mcp", {"mcp-protocol-version": BEFORE}) == 200, "a plain client on localhost is served")
        check(refused_by(f"{url}/mcp", {"host": "rebound.example"}) == 403, "a foreign Host was served")
        check(refused_by(f"{url}/mcp", {"origin": "https://client.example"}) == 200, "a page of another origin was not served")
        arguments = ["mcp", "--data-dir", directory]
        for mode, version in [("auto", CURRENT), ("legacy", BEFORE)]:
            async with Client(StdioServerParameters(command=AGENTDEX, args=arguments), mode=mode) as client:
                await use_every_tool(client, version)
    finally:
        demo.terminate()
        demo.wait()
        shutil.rmtree(pathlib.Path(directory), ignore_errors=True)
    print(f"{passed} passed, 0 failed")


asyncio.run(main())
