// Makes the page live and comfortable. Without it everything can still be read and done.
"use strict";

const $ = (id) => document.getElementById(id);

// Times are written in UTC; readers see their own.
function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = time.textContent;
    const today = at.toDateString() === new Date().toDateString();
    const day = today ? {} : { day: "numeric", month: "short", year: "numeric" };
    time.textContent = at.toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit" });
  }
}

function copyButtons(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
}

// What does not scroll need not be a stop on the way by keyboard.
function stops() {
  for (const region of document.querySelectorAll("[role=region]")) {
    const scrolls = region.scrollWidth > region.clientWidth + 1 || region.scrollHeight > region.clientHeight + 1;
    if (scrolls) region.tabIndex = 0;
    else if (region !== document.activeElement) region.removeAttribute("tabindex");
  }
}

function dress(root) {
  localTimes(root);
  copyButtons(root);
}

// --- News -----------------------------------------------------------------------------------------------------------

// Takes over what changed and leaves everything else as it is: open details, focus, what is being typed.
function takeOver(here, there) {
  const old = new Map([...here.children].filter((e) => e.id).map((e) => [e.id, e]));
  const kept = new Set();
  const news = [];
  let before = null;
  for (const fresh of [...there.children]) {
    const known = old.get(fresh.id);
    if (known && known.dataset.version === fresh.dataset.version) {
      kept.add(known);
      before = known;
      continue;
    }
    if (fresh.dataset.say && (!known || known.dataset.say !== fresh.dataset.say)) news.push(fresh.dataset.say);
    if (known) replace(known, fresh);
    else if (before) before.after(fresh);
    else here.prepend(fresh);
    kept.add(fresh);
    before = fresh;
  }
  for (const child of [...here.children]) if (!kept.has(child)) child.remove();
  return news;
}

function replace(known, fresh) {
  for (const open of known.querySelectorAll("details[open][data-keep]")) {
    const same = fresh.querySelector(`details[data-keep="${CSS.escape(open.dataset.keep)}"]`);
    if (same) same.open = true;
  }
  const spots = (root) => [...root.querySelectorAll("a, button, summary, pre, .scroll")];
  const focused = spots(known).indexOf(document.activeElement);
  const label = focused >= 0 ? document.activeElement.textContent : "";
  known.replaceWith(fresh);
  if (focused < 0) return;
  // Never onto another button: a key that is pressed now must not decide something else.
  const same = spots(fresh).find((spot) => spot.textContent === label);
  if (same) same.focus({ preventScroll: true });
  else {
    fresh.tabIndex = -1;
    fresh.focus({ preventScroll: true });
  }
}

function show(html) {
  const there = new DOMParser().parseFromString(html, "text/html");
  dress(there);
  const atEnd = document.documentElement.scrollHeight - window.innerHeight - window.scrollY < 80;
  const news = [];
  for (const fresh of [...there.querySelectorAll("body > [id]")]) {
    const here = $(fresh.id);
    if (!here) continue;
    if (fresh.id === "entries") news.push(...takeOver(here, fresh));
    else if (here.tagName === "INPUT") here.value = fresh.value;
    else if (fresh.innerHTML !== here.innerHTML) replace(here, fresh);
    if (fresh.dataset.says !== undefined && $("text")) $("text").placeholder = fresh.dataset.says;
    if (fresh.dataset.title) document.title = document.title.replace(/^.*(?= · PTQ bot$)/, fresh.dataset.title);
  }
  stops();
  if (news.length && $("news")) $("news").textContent = news.join(". ");
  if (atEnd && news.length && $("entries")) window.scrollTo({ top: document.documentElement.scrollHeight });
}

function follow(live) {
  const banner = $("connection");
  let stream = null;
  let lost = null;
  let busy = false;
  let again = false;
  let retry = 0;

  function isLive(yes, why) {
    if (yes) {
      lost = null;
      banner.hidden = true;
      return;
    }
    lost ??= new Date();
    const since = lost.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
    const text = `Not live since ${since}. ${why || "Trying again; what you write is kept."}`;
    if (banner.textContent !== text) banner.textContent = text;
    banner.hidden = false;
  }

  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(live.dataset.fragment, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        show(await answer.text());
        isLive(true);
      } else isLive(false, answer.status === 401 ? "Load the page again to sign in." : "");
    } catch {
      isLive(false);
    }
    // Many changes at once are one look; the last one is always looked at.
    await new Promise((done) => setTimeout(done, 300));
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }

  function open() {
    clearTimeout(retry);
    if (stream || document.hidden) return;
    stream = new EventSource(live.dataset.live);
    stream.addEventListener("changed", refresh);
    stream.onerror = () => {
      isLive(false);
      if (stream && stream.readyState === EventSource.CLOSED) {
        close();
        retry = setTimeout(() => { refresh(); open(); }, 5000);
      }
    };
  }

  function close() {
    clearTimeout(retry);
    if (stream) stream.close();
    stream = null;
  }

  // Browsers allow a site few connections: a page that nobody looks at holds none, and looks again when it is shown.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
}

// --- Writing --------------------------------------------------------------------------------------------------------

// What is being written survives a press of a button, a reload and a sign-in. It is forgotten once it was taken.
function keepDraft(form) {
  const field = form.elements.text;
  const name = `draft-${form.dataset.draft}`;
  const sent = sessionStorage.getItem(`${name}-sent`);
  sessionStorage.removeItem(`${name}-sent`);
  if (sent !== null && !field.value && new URLSearchParams(location.search).has("told")) sessionStorage.removeItem(name);
  if (sent !== null && form.dataset.draft === "request" && location.pathname !== "/") sessionStorage.removeItem(name);
  const draft = sessionStorage.getItem(name);
  if (!field.value && draft) field.value = draft;
  field.addEventListener("input", () => sessionStorage.setItem(name, field.value));
  form.addEventListener("submit", () => sessionStorage.setItem(`${name}-sent`, "yes"));
}

function confirmed(form) {
  const dialog = $("confirm");
  $("confirm-question").textContent = form.dataset.confirm;
  $("confirm-yes").textContent = form.dataset.label;
  dialog.returnValue = "";
  dialog.onclose = () => {
    if (dialog.returnValue !== "yes") return;
    const yes = Object.assign(document.createElement("input"), { type: "hidden", name: "confirmed", value: "yes" });
    form.append(yes);
    form.removeAttribute("data-confirm");
    form.requestSubmit();
  };
  dialog.showModal();
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.confirm && $("confirm")) {
    event.preventDefault();
    confirmed(form);
    return;
  }
  if (form.method !== "post") return;
  if (form.dataset.busy) {
    event.preventDefault();
    return;
  }
  form.dataset.busy = "yes";
  for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
});

window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload(); // a page from the history has old buttons
});

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const label = copy.textContent;
    try {
      await navigator.clipboard.writeText(copy.dataset.copy);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not copied";
    }
    setTimeout(() => (copy.textContent = label), 1500);
    return;
  }
  const example = event.target.closest("[data-example]");
  if (example && $("text")) {
    event.preventDefault();
    $("text").value = example.textContent;
    $("text").focus();
  }
});

// Of several boxes, the one that means none excludes the others.
document.addEventListener("change", (event) => {
  const group = event.target.closest("[data-either]");
  if (!group || !event.target.checked) return;
  for (const box of group.querySelectorAll("input[type=checkbox]")) {
    if ((box.value === group.dataset.either) !== (event.target.value === group.dataset.either)) box.checked = false;
  }
});

document.addEventListener("keydown", (event) => {
  const field = event.target.closest("input, textarea, select");
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && field && "enter" in field.dataset) {
    event.preventDefault();
    if (field.value.trim()) field.form.requestSubmit();
  } else if (event.key === "/" && !field && !event.ctrlKey && !event.metaKey && !event.altKey) {
    const goal = document.querySelector("[data-slash]");
    if (goal && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      goal.focus();
    }
  }
});

dress(document);
stops();
window.addEventListener("resize", stops);
document.addEventListener("toggle", stops, true);
document.querySelectorAll("form[data-draft]").forEach(keepDraft);
if ($("live")) follow($("live"));
