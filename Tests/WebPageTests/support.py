"""What the page's tests share: the service's API, the file server's log, and the page in a browser.

The environment names what was started for them (`WebPageTests.swift` does that):

    TOWLINE_PAGE       the page's address
    TOWLINE_TOKEN      the access token
    TOWLINE_FILES      the file server: /slow/… is 1 GiB, /mapped/… 256 MiB, at a rate; /small/… is 64 KiB
    TOWLINE_LOG        the file server's log
    TOWLINE_AXE        axe.min.js
    TOWLINE_PICTURES   where to leave pictures of the page (optional)
"""

import atexit
import concurrent.futures
import contextlib
import functools
import http.client
import json
import os
import signal
import time
import unittest
import urllib.parse

from browser import PATIENCE, Browser, settled

ADDRESS = os.environ["TOWLINE_PAGE"]
TOKEN = os.environ["TOWLINE_TOKEN"]
FILES = os.environ["TOWLINE_FILES"].rstrip("/")
LOG = os.environ["TOWLINE_LOG"]
PICTURES = os.environ.get("TOWLINE_PICTURES")


@functools.cache
def the_browser():
    """One for all tests: to start it takes longer than most of them."""
    browser = Browser()
    atexit.register(browser.close)
    # Whoever gives up on the tests is not left with a browser.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return browser


class Service:
    """The API, for what a test prepares behind the page's back."""

    def __init__(self):
        self.host = urllib.parse.urlsplit(ADDRESS).netloc

    def call(self, method, path, body=None, connection=None):
        """One request; over `connection`, which is kept, or over one of its own."""
        kept, connection = connection, connection or http.client.HTTPConnection(self.host, timeout=PATIENCE)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        if method != "GET":
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, f"/api/v1/{path}", None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            if kept is None:
                connection.close()
        if answer.status >= 400:
            raise AssertionError(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text) if text else None

    def add(self, *urls, **options):
        """Adds downloads, a thousand at a time; gives what the service said of them."""
        added = []
        for start in range(0, len(urls), 1000):
            downloads = [{"url": url, **options} for url in urls[start:start + 1000]]
            added += self.call("POST", "downloads", {"downloads": downloads})["downloads"]
        return added

    def downloads(self):
        """All there are, in the queue's order."""
        found, cursor = [], ""
        while True:
            page = self.call("GET", f"downloads?limit=1000{cursor}")
            found += page["downloads"]
            if "next" not in page:
                return found
            cursor = f"&cursor={urllib.parse.quote(page['next'])}"

    def clear(self):
        """Removes all, with their files, and takes limits off."""
        while found := self.downloads():
            parts = [found[start::8] for start in range(8)]
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(self.remove, parts))
        self.call("PATCH", "settings", {"rateLimit": None})

    def remove(self, downloads):
        """Removes those, with their files, over one connection."""
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        for download in downloads:
            self.call("DELETE", f"downloads/{download['id']}?files=true", connection=connection)
        connection.close()


def requests_to(path):
    """(how many requests the file server got for that path, how many of them it still answers)"""
    numbers, ended = set(), set()
    with open(LOG, encoding="utf-8") as log:
        for line in log:
            event = json.loads(line)
            if event["event"] == "request" and event["target"] == path:
                numbers.add(event["request"])
            elif event["event"] == "end":
                ended.add(event["request"])
    return len(numbers), len(numbers - ended)


class PageTestCase(unittest.TestCase):
    """A test with the page open, signed in, and an empty list. Fails if the console complained."""

    maxDiff = None
    # What the browser itself reports about requests that a test makes fail on purpose.
    expected_complaints = ()

    @classmethod
    def setUpClass(cls):
        cls.browser = the_browser()
        cls.service = Service()

    def setUp(self):
        self.browser.open("about:blank")
        self.service.clear()
        self.browser.size(1280, 860)
        self.browser.prefer(color_scheme="light", reduced_motion="reduce")
        # What an earlier test left: the session, theme, language.
        self.browser.devtools("Storage.clearDataForOrigin", origin=ADDRESS.rstrip("/"), storageTypes="cookies,local_storage")
        self.visit()
        self.browser.run("sessionStorage.clear()")
        self.browser.complaints()
        self.expected_complaints = ()

    def tearDown(self):
        complaints = [
            text for text in self.browser.complaints() if not any(part in text for part in self.expected_complaints)
        ]
        self.assertEqual(complaints, [], "the console complained")
        elsewhere = self.browser.run(
            "return performance.getEntriesByType('resource').map((each) => each.name)"
            ".filter((name) => new URL(name).origin !== location.origin)")
        self.assertEqual(elsewhere, [], "the page asked another host")

    def visit(self, fragment=None, address=ADDRESS):
        """Opens the page, signed in by a link unless there is another fragment, and waits until it has read the list."""
        # A change of the fragment alone loads nothing.
        self.browser.open("about:blank")
        self.browser.open(address + (self.sign_in_fragment() if fragment is None else fragment))
        self.listed()

    @contextlib.contextmanager
    def without_shared_workers(self):
        """Pages that are opened inside have no shared workers, as in some browsers of phones."""
        source = "delete globalThis.SharedWorker"
        script = self.browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=source)
        try:
            yield
        finally:
            self.browser.devtools("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])

    def sign_in_fragment(self):
        """The end of a link that signs in once."""
        return "#code=" + self.service.call("POST", "session/codes")["code"]

    def listed(self):
        self.browser.wait("the list", "return document.querySelector('.row') || !document.querySelector('#empty').hidden")

    def picture(self, name):
        if PICTURES:
            os.makedirs(PICTURES, exist_ok=True)
            self.browser.picture(os.path.join(PICTURES, f"{name}.png"))

    # The list as somebody sees it

    def row(self, name):
        """Waits for the row of that name; gives a selector of it."""
        script = "return [...document.querySelectorAll('.row')].find((row) => row.querySelector('.name').textContent === a0)"
        element = self.browser.wait(f"a row named {name}", f"{script}?.dataset.id", name)
        return f".row[data-id='{element}']"

    def state(self, row):
        return self.browser.run("return document.querySelector(arguments[0])?.dataset.state", row)

    def wait_state(self, row, *states):
        self.browser.wait(
            f"{row} to be {' or '.join(states)}", "return a1.includes(document.querySelector(a0)?.dataset.state)",
            row, list(states))

    def wait_order(self, letters):
        """Waits until the service has the downloads in that order, by the letter before `.bin`: what is shown is ahead of it."""
        deadline = time.monotonic() + 10
        while (found := "".join(each["url"][-5] for each in self.service.downloads())) != letters:
            self.assertLess(time.monotonic(), deadline, f"{found} instead of {letters}")
            time.sleep(0.05)

    def held(self, row):
        """How far the row's bar is, 0 … 1."""
        script = "return new DOMMatrix(getComputedStyle(document.querySelector(arguments[0] + ' .progress i')).transform).a"
        return self.browser.run(script, row)

    def wait_held(self, row, more_than):
        """Waits until the bar is further than that."""
        script = "return new DOMMatrix(getComputedStyle(document.querySelector(a0 + ' .progress i')).transform).a > a1"
        self.browser.wait(f"{row} to move beyond {more_than}", script, row, more_than)

    def assert_still(self, row, path, seconds=1.5):
        """The row's bar, its words and the file server's log stand still."""
        deadline = time.monotonic() + PATIENCE
        while requests_to(path)[1] and time.monotonic() < deadline:
            time.sleep(0.05)
        asked, open_requests = requests_to(path)
        self.assertEqual(open_requests, 0, "the file server still answers")
        read = lambda: (self.held(row), self.browser.texts(f"{row} .size"))
        before = settled(read, seconds)
        time.sleep(seconds)
        self.assertEqual(read(), before)
        self.assertEqual(requests_to(path), (asked, 0), "the file server was asked while paused")
        return before

    def focus(self):
        """What has the focus, in short."""
        return self.browser.run(
            "const e = document.activeElement; return e.id || e.dataset.do || e.getAttribute('role') || e.className || e.tagName")

    def dialog(self):
        """The title of the open dialog."""
        return self.browser.wait("a dialog", "return document.querySelector('dialog[open] h2')?.textContent")

    def no_dialog(self):
        self.browser.wait("the dialog to close", "return !document.querySelector('dialog[open]')")
