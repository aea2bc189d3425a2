// Tests every page and the main user journeys in a real browser with the demo's data: at desktop and phone width, in both
// themes, with and without JavaScript, checked by axe-core against WCAG 2.2 AA.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { get } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startBrowser, startDemo } from "./demo.js";
import { difference, small } from "./snapshots.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
const DESKTOP = { width: 1280, height: 900 };
// Fonts, times and counts differ between machines; a missing style sheet or a misplaced column differs far more.
const DIFFERENCE_MAX = 0.1;
const PHONE = { width: 390, height: 844 };

let demo, browser, pages;

before(async () => {
  [demo, browser] = await Promise.all([startDemo(), startBrowser()]);
  const found = await (await fetch(`${demo.url}/search?q=book+flight`)).json();
  pages = {
    home: "/",
    search: "/search?q=book+flight",
    empty: "/search?q=zzzqqqxxyy",
    capability: `/capabilities/${found.results[0].id}`,
    sites: "/sites",
    site: `/sites/${found.results[0].site}`,
    types: "/semantic-types",
    changes: "/changes",
    crawl: "/crawl",
    validate: "/validate",
    diff: `/manifests/${found.results[0].manifest_id}/diff`,
    stats: "/stats",
  };
});

after(async () => {
  await browser?.close();
  await demo?.stop();
});

// Opens a page and fails on console errors, page errors and requests to third parties.
async function visit(path, options, look) {
  const context = await browser.newContext({ viewport: DESKTOP, ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => request.url().startsWith(demo.url) || complaints.push(`asks a third party: ${request.url()}`));
  // the page of the crawl keeps an event stream open, so its network is never idle
  const response = await page.goto(demo.url + path, { waitUntil: path === pages.crawl ? "load" : "networkidle" });
  assert.equal(response.status(), 200, path);
  await look(page, response);
  assert.deepEqual(complaints, [], path);
  await context.close();
}

test("search to capability to site, with the keyboard alone", async () => {
  await visit("/", {}, async (page) => {
    await page.keyboard.type("book flight");
    await Promise.all([page.waitForURL(/q=book(\+|%20)flight/), page.keyboard.press("Enter")]);
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.name), "q");
    const first = page.locator("main article a").first();
    assert.equal((await first.innerText()).trim(), "Book seat");
    await first.click();
    await page.waitForURL(/\/capabilities\//);
    assert.match(await page.locator("h1").innerText(), /book/i);
    await page.locator("main a[href^='/sites/']").first().click();
    await page.waitForURL(/\/sites\/skyhop\.example/);
    assert.match(await page.locator("main").innerText(), /robots\.txt/i);
  });
});

test("the same journey without scripts", async () => {
  await visit("/", { javaScriptEnabled: false }, async (page) => {
    await page.fill("input[name=q]", "book flight");
    await page.press("input[name=q]", "Enter");
    await page.waitForURL(/q=book(\+|%20)flight/);
    assert.match(await page.locator("main article").first().innerText(), /skyhop\.example/);
  });
});

test("suggestions come as one types, and the keyboard takes one", async () => {
  await visit("/", {}, async (page) => {
    await page.locator("input[name=q]").pressSequentially("boo");
    const options = page.locator("#suggestions [role=option]");
    await options.first().waitFor();
    assert.ok((await options.count()) > 0);
    await page.keyboard.press("ArrowDown");
    assert.equal(await options.first().getAttribute("aria-selected"), "true");
    const chosen = await options.first().locator("span").first().innerText();
    await Promise.all([page.waitForURL(/\/search\?q=/), page.keyboard.press("Enter")]);
    assert.equal(await page.inputValue("input[name=q]"), chosen);
  });
});

test("a tool definition is copied from the page of its capability", async () => {
  await visit(pages.capability, { permissions: ["clipboard-read", "clipboard-write"] }, async (page) => {
    const tool = page.locator(".tools details").first();
    await tool.locator("button.copy").click();
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(copied.annotations.destructiveHint, true);
    assert.match(copied.name, /^[a-zA-Z0-9_-]{1,64}$/);
  });
});

test("a broken manifest is validated, with and without scripts", async () => {
  for (const javaScriptEnabled of [true, false]) {
    await visit("/validate", { javaScriptEnabled }, async (page) => {
      await page.fill("textarea[name=document]", '{\n  "awp_version": "0.1",\n  "actions": [{"id": "order"}]\n}');
      await page.click("main form button[type=submit]");
      await page.locator("#verdict").waitFor();
      assert.match(await page.locator("#verdict").innerText(), /AWP/);
      assert.ok((await page.locator(".lines .marked").count()) > 0, "no finding stands beside its line");
      assert.match(await page.inputValue("textarea[name=document]"), /awp_version/);
    });
  }
});

test("a file dropped on the validator is read into it", async () => {
  await visit("/validate", {}, async (page) => {
    await page.evaluate(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(["{}"], "agent.json", { type: "application/json" }));
      document.querySelector("textarea").dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
    });
    await page.waitForFunction(() => document.querySelector("textarea").value === "{}");
  });
});

test("the owner of a site reads how to opt out", async () => {
  await visit(pages.site, {}, async (page) => {
    assert.match(await page.locator("main").innerText(), /User-agent: agentdex\s+Disallow: \//);
  });
});

test("the page of the crawl shows what happens without being asked again", async () => {
  await visit("/crawl", {}, async (page) => {
    const numbers = page.locator("[data-live=queue] dl");
    const before = await numbers.innerText();
    await page.evaluate(() => (document.documentElement.dataset.same = "page"));
    const submitted = await fetch(`${demo.url}/sites`, { method: "POST", body: JSON.stringify({ domain: "newcomer.example" }) });
    assert.equal(submitted.status, 202);
    await page.waitForFunction((text) => document.querySelector("[data-live=queue] dl").innerText !== text, before);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.same), "page", "the page was loaded anew");
  });
});

test("the description of the interface can be read and tried", async () => {
  await visit("/docs", {}, async (page) => {
    const operation = page.locator(".opblock", { hasText: "/semantic-types" }).first();
    await operation.locator("button").first().click();
    await operation.getByRole("button", { name: "Execute" }).click();
    await operation.locator(".live-responses-table .response-col_status", { hasText: "200" }).waitFor();
  });
});

test("a search without a good answer says so", async () => {
  await visit(pages.empty, {}, async (page) => {
    assert.match(await page.locator("main").innerText(), /nothing/i);
    assert.equal(await page.locator("main article").count(), 0);
  });
});

test("every page passes axe at WCAG 2.2 AA, in both themes", async () => {
  for (const [name, path] of Object.entries(pages)) {
    for (const colorScheme of ["light", "dark"]) {
      // The page's content security policy forbids other scripts, so axe is injected through the debugger.
      await visit(path, { colorScheme, bypassCSP: true }, async (page) => {
        await page.evaluate(AXE);
        const report = await page.evaluate((tags) => globalThis.axe.run({ runOnly: tags }), RULES);
        const broken = report.violations.map((rule) => `${rule.id}: ${rule.nodes.map((node) => node.html).join(" ")}`);
        assert.deepEqual(broken, [], `${name} in ${colorScheme}`);
      });
    }
  }
});

test("no page is wider than a phone, and each has a title of its own", async () => {
  const titles = new Set();
  for (const [name, path] of Object.entries(pages)) {
    await visit(path, { viewport: PHONE }, async (page) => {
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - globalThis.innerWidth);
      assert.ok(overflow <= 0, `${name} is ${overflow} px too wide`);
      titles.add(await page.title());
    });
  }
  assert.equal(titles.size, Object.keys(pages).length);
});

test("nothing moves while a page loads", async () => {
  for (const [name, path] of Object.entries(pages)) {
    for (const viewport of [DESKTOP, PHONE]) {
      await visit(path, { viewport }, async (page) => {
        const shifted = await page.evaluate(
          () =>
            new Promise((resolve) => {
              let sum = 0;
              new PerformanceObserver((list) => list.getEntries().forEach((entry) => (sum += entry.value))).observe({ type: "layout-shift", buffered: true });
              setTimeout(() => resolve(sum), 150);
            }),
        );
        // half of the Web Vitals limit for a good score: a table that arrives in two parts may widen a column
        assert.ok(shifted < 0.05, `${name} at ${viewport.width} px shifted by ${shifted}`);
      });
    }
  }
});

test("the first page comes in 50 KB", async () => {
  const compressed = async (path, accept) => {
    const headers = { "accept-encoding": "gzip", accept };
    const response = await new Promise((resolve, reject) => get(demo.url + path, { headers }, resolve).on("error", reject));
    let bytes = 0;
    for await (const chunk of response) bytes += chunk.length;
    assert.equal(response.headers["content-encoding"], "gzip", path);
    return bytes;
  };
  const page = await (await fetch(demo.url, { headers: { accept: "text/html" } })).text();
  const assets = [...page.matchAll(/(?:href|src)="(\/assets\/[^"]+\.(?:css|js))"/g)].map((match) => match[1]);
  assert.ok(assets.length >= 2, "no style sheet or no script");
  let bytes = await compressed("/", "text/html");
  for (const asset of new Set(assets)) bytes += await compressed(asset, "*/*");
  assert.ok(bytes <= 50_000, `the first page takes ${bytes} bytes`);
});

test("pages carry a strict policy and stay small", async () => {
  for (const path of Object.values(pages)) {
    const response = await fetch(demo.url + path, { headers: { accept: "text/html" } });
    const policy = response.headers.get("content-security-policy");
    assert.match(policy, /default-src 'none'|default-src 'self'/);
    assert.doesNotMatch(policy, /unsafe-inline|unsafe-eval/);
    assert.ok((await response.arrayBuffer()).byteLength < 200_000, `${path} is large`);
  }
});

test("pages look as they did when somebody looked", async () => {
  const strangers = [];
  for (const [name, path] of Object.entries(pages)) {
    for (const [colorScheme, viewport] of [["light", DESKTOP], ["dark", DESKTOP], ["light", PHONE]]) {
      await visit(path, { colorScheme, viewport }, async (page) => {
        const file = new URL(`snapshots/${name}-${viewport === PHONE ? "phone" : colorScheme}.png`, import.meta.url).pathname;
        const share = difference(file, small(await page.screenshot()), process.env.KEEP_SNAPSHOTS);
        if (share > DIFFERENCE_MAX) strangers.push(`${name} in ${colorScheme} at ${viewport.width} px: ${Math.round(share * 100)} %`);
      });
    }
  }
  assert.deepEqual(strangers, [], "look at the pages (tests/browser/run screenshots DIR), then keep them with KEEP_SNAPSHOTS=1 tests/browser/run");
});

test("pictures of the pages", { skip: !process.env.SCREENSHOTS }, async () => {
  mkdirSync(process.env.SCREENSHOTS, { recursive: true });
  for (const [name, path] of Object.entries(pages)) {
    for (const colorScheme of ["light", "dark"]) {
      await visit(path, { colorScheme }, (page) => page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}-${colorScheme}.png`) }));
    }
  }
});
