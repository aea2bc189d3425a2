// Starts `agentdex demo` on a free port with a fresh data directory, and a Chromium for the tests.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const START_SECONDS_MAX = 60;

// A port that is free now, so that the addresses on pages are those of the demo.
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

// Resolves with { url, stop } once the demo prints its address and has indexed all sites.
export async function startDemo() {
  const data = mkdtempSync(join(tmpdir(), "agentdex-browser-"));
  const listen = `127.0.0.1:${await freePort()}`;
  const child = spawn(process.env.AGENTDEX, ["demo", "--listen", listen, "--data-dir", data], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = [];
  child.stderr.on("data", (chunk) => said.push(String(chunk)));
  const url = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`the demo did not start:\n${said.join("")}`)), START_SECONDS_MAX * 1000);
    createInterface({ input: child.stdout }).on("line", (line) => {
      said.push(`${line}\n`);
      const found = line.match(/curl '(http:\/\/127\.0\.0\.1:\d+)/);
      if (found) {
        clearTimeout(timer);
        resolve(found[1]);
      }
    });
    child.on("exit", (code) => reject(new Error(`the demo ended with ${code}:\n${said.join("")}`)));
  });
  const stop = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGINT");
    await ended;
    rmSync(data, { recursive: true, force: true });
  };
  return { url, stop };
}

export function startBrowser() {
  const quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: process.env.CHROMIUM, args: quiet });
}
