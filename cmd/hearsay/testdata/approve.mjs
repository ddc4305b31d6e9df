// A person at the approvals page: allows the first question once, denies the second.
import { createRequire } from "node:module";
import { join } from "node:path";
import assert from "node:assert";

const { MODULES, CHROMIUM, PAGE } = process.env;
const { chromium } = createRequire(join(MODULES, "x.js"))("playwright-core");
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
  const page = await browser.newPage();
  await page.goto(PAGE);
  for (const button of ["Allow this once", "Deny"]) {
    const question = page.locator("article");
    await question.waitFor({ timeout: 60_000 });
    const text = await question.textContent();
    for (const want of ["send_mail", "mail", "drop@collector.example", "NOTES", "send", "runs without a sandbox"]) assert.ok(text.includes(want), `no ${want} in ${text}`);
    await page.getByRole("button", { name: button, exact: true }).click();
    await page.locator('[role="status"]').waitFor();
  }
} finally {
  await browser.close();
}
