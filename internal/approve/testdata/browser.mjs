// Drives the approvals page in a real Chromium with the keyboard alone and fails loudly on what a person could not use.
import { createRequire } from "node:module";
import { join } from "node:path";
import assert from "node:assert";

const { MODULES, CHROMIUM, SHOTS, SCRIPT, PAGE } = process.env;
const { chromium } = createRequire(join(MODULES, "x.js"))("playwright-core");
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const context = await browser.newContext({ javaScriptEnabled: SCRIPT === "true", viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const outside = [];
  page.on("request", r => { if (new URL(r.url()).host !== new URL(PAGE).host) outside.push(r.url()); });
  page.on("pageerror", e => outside.push(String(e)));
  page.on("console", m => { if (m.type() === "error") outside.push(m.text()); });
  await page.goto(PAGE);
  assert.equal(new URL(page.url()).search, "", "the code stays in the address bar");
  assert.equal(await page.locator("article").count(), 10, "not all ten questions are shown");
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: join(SHOTS, `approvals-${width}-script-${SCRIPT}.png`) });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth).catch(() => 0);
    assert.ok(wide <= width, `the page is ${wide} wide in a window of ${width}`);
  }
  // Tab from the top: the first stop of each question is Deny, then once, then session.
  const focused = async () => (await page.locator(":focus").getAttribute("id")) ?? "";
  for (let i = 0; i < 10; i++) {
    const before = await page.locator("article").count();
    if (SCRIPT === "false" || i === 0) await page.reload();
    if (SCRIPT === "true") await page.evaluate(() => document.activeElement.blur());
    for (let step = 0; step <= i % 3; step++) await page.keyboard.press("Tab");
    const id = await focused();
    assert.ok(id.startsWith(["deny-", "once-", "session-"][i % 3]), `focus is on ${id} after ${i % 3 + 1} tabs`);
    await page.keyboard.press("Enter");
    await page.locator('[role="status"]').waitFor();
    assert.equal(await page.locator("article").count(), before - 1, "the answered question is still there");
  }
  assert.ok((await page.locator(".empty").textContent()).includes("Nothing waits"));
  if (SCRIPT === "true") { // a question asked now appears without loading the page again, and goes when it is answered elsewhere
    await fetch(new URL("/ask", PAGE));
    await page.locator("article").waitFor();
    assert.equal(await page.title(), "(1) hearsay approvals");
    await fetch(new URL("/deny", PAGE));
    await page.locator(".empty").waitFor();
  }
  assert.deepEqual(outside, [], "the page loads or fails something outside");
  console.log("ten answered with the keyboard, nothing loaded from outside");
} finally {
  await browser.close();
}
