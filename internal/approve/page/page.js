// Keeps the list current. Without it the page works the same and is loaded again every 15 seconds.
"use strict";
(() => {
  const questions = document.getElementById("questions");
  let version = questions.dataset.version;

  async function refresh() {
    const answer = await fetch("list", { credentials: "same-origin" });
    if (answer.status === 401) { location.reload(); return; }
    if (!answer.ok) return;
    const fresh = document.createElement("div");
    fresh.innerHTML = await answer.text(); // written and escaped by the server
    // A question stays the element it was, so that focus and reading position survive; only what is new or gone changes.
    const keep = new Map([...questions.querySelectorAll("article")].map(a => [a.getAttribute("aria-labelledby"), a]));
    const next = [...fresh.children].map(e => keep.get(e.getAttribute("aria-labelledby")) || e);
    for (const old of [...questions.children]) if (!next.includes(old)) old.remove();
    next.forEach((e, i) => { if (questions.children[i] !== e) questions.insertBefore(e, questions.children[i] || null); });
    const n = questions.querySelectorAll("article").length;
    document.title = (n ? `(${n}) ` : "") + "hearsay approvals";
  }

  const stream = new EventSource("events");
  stream.onmessage = event => { if (event.data !== version) { version = event.data; refresh(); } };
})();
