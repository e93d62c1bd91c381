"""Several tabs with the page: they share one event stream, and each shows the state of the service."""

import json
import socket
import threading
import time
import unittest
import urllib.parse

from browser import PATIENCE
from support import ADDRESS, FILES, PageTestCase

PORT = urllib.parse.urlsplit(ADDRESS).port
BANNER = "return !document.querySelector('#banner').hidden"
NO_BANNER = "return document.querySelector('#banner').hidden"


class Gateway:
    """A way to the service that counts event streams and can fail: `cut` ends its connections, `mute` delays them."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/"
        self.sockets, self.streams, self.is_cut, self.speaks = set(), set(), False, threading.Event()
        self.holds_streams = False
        self.speaks.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.is_cut:
                client.close()
                continue
            service = socket.create_connection(("127.0.0.1", PORT))
            self.sockets |= {client, service}
            for source, target in ((client, service), (service, client)):
                threading.Thread(target=self.forward, args=(source, target), daemon=True).start()

    def forward(self, source, target):
        try:
            while data := source.recv(65536):
                if data.startswith(b"GET /api/v1/events "):
                    self.streams.add(source)
                self.speaks.wait()
                while self.holds_streams and target in self.streams:
                    time.sleep(0.05)
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            self.end(each)

    def end(self, each):
        self.sockets.discard(each)
        self.streams.discard(each)
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        each.close()

    def cut(self):
        self.is_cut = True
        for each in list(self.sockets):
            self.end(each)

    def mend(self):
        self.is_cut = False

    def tell(self, event, data):
        """Adds an event to each stream, as a chunk of its own (RFC 9112 §7.1)."""
        text = f"event: {event}\ndata: {json.dumps(data)}\n\n".encode()
        for stream in list(self.streams):
            stream.sendall(b"%x\r\n%s\r\n" % (len(text), text))

    def mute(self):
        self.speaks.clear()

    def unmute(self):
        self.speaks.set()

    def close(self):
        self.unmute()
        self.cut()
        self.listener.close()


class Tabs(PageTestCase):
    """Tests with several tabs that reach the service through a gateway."""

    def setUp(self):
        super().setUp()
        self.gateway = Gateway()
        self.addCleanup(self.gateway.close)
        self.tabs = [self.browser.tab()]
        self.addCleanup(self.close_tabs)
        self.visit("", self.gateway.address)

    def close_tabs(self):
        for tab in self.tabs[1:]:
            self.browser.close_tab(tab, self.tabs[0])

    def open_tabs(self, number, address=None):
        """Opens further tabs with the page, until there are so many."""
        while len(self.tabs) < number:
            self.tabs.append(self.browser.open_tab())
            self.visit("", address or self.gateway.address)

    def each_tab(self):
        for tab in self.tabs:
            self.browser.switch(tab)
            yield tab

    def wait_streams(self, number, gateway=None):
        deadline = time.monotonic() + PATIENCE
        while (found := len((gateway or self.gateway).streams)) != number:
            self.assertLess(time.monotonic(), deadline, f"{found} streams instead of {number}")
            time.sleep(0.05)

    def assert_all_hear(self, name):
        self.service.add(f"{FILES}/small/{name}", startsPaused=True)
        for _ in self.each_tab():
            self.row(name)

    def assert_notice_is_shown(self, gateway, message):
        """A problem of the list is shown once, although the service sends it to each page that opens."""
        self.wait_streams(1, gateway)
        shown = "return [...document.querySelectorAll('.toast.bad')].map((each) => each.innerText)"
        for name in ("first.bin", "second.bin"):
            gateway.tell("notice", {"message": message})
            self.service.add(f"{FILES}/small/{message}-{name}", startsPaused=True)
            self.row(f"{message}-{name}")
            self.assertEqual(self.browser.run(shown), [message])

    def test_a_problem_of_the_list_is_shown_once(self):
        self.assert_notice_is_shown(self.gateway, "rebuilt")

    def test_eight_tabs_share_one_stream(self):
        self.open_tabs(8)
        self.wait_streams(1)
        self.assert_all_hear("shared.bin")
        # The stream does not depend on the tab that opened it.
        self.browser.close_tab(self.tabs.pop(0), self.tabs[0])
        began = time.monotonic()
        self.assert_all_hear("left.bin")
        self.assertLess(time.monotonic() - began, 5, "the other tabs waited for a new stream")
        self.wait_streams(1)

    def test_the_stream_is_shared_without_tls(self):
        self.expected_complaints = ("Cross-Origin-Opener-Policy",)
        gateway = Gateway()
        self.addCleanup(gateway.close)
        address = f"http://nas.test:{gateway.port}/"
        self.visit(address=address)
        self.assertFalse(self.browser.run("return isSecureContext"))
        self.open_tabs(3, address)
        self.wait_streams(1, gateway)
        self.assert_all_hear("plain.bin")

    def test_the_last_tab_closes_the_stream(self):
        """A tab that is left, or hidden for a minute, leaves the stream."""
        self.open_tabs(2)
        self.wait_streams(1)
        for _ in self.each_tab():
            self.browser.run("dispatchEvent(new Event('pagehide'))")
        self.wait_streams(0)
        self.service.add(f"{FILES}/small/meanwhile.bin", startsPaused=True)
        # The service sends an event up to 0.25 s later: the new stream must not contain it.
        time.sleep(1)
        self.browser.run("dispatchEvent(new Event('pageshow'))")
        self.row("meanwhile.bin")
        self.wait_streams(1)

    def test_each_tab_says_that_the_service_is_gone(self):
        self.expected_complaints = ("ERR_", "Failed to load")
        self.open_tabs(2)
        self.gateway.cut()
        for _ in self.each_tab():
            self.browser.wait("the banner", BANNER)
            self.assertEqual(self.browser.run("return document.title"), "No connection – Towline")
        self.gateway.mend()
        for _ in self.each_tab():
            self.browser.wait("the stream", NO_BANNER)
            self.assertEqual(self.browser.run("return document.title"), "Towline")
        self.assert_all_hear("mended.bin")

    def test_each_tab_says_that_the_service_is_silent(self):
        self.expected_complaints = ("ERR_", "Failed to load")
        self.open_tabs(2)
        self.gateway.mute()
        for _ in self.each_tab():
            self.browser.wait("the banner", BANNER)
        self.service.add(f"{FILES}/small/missed.bin", startsPaused=True)
        self.gateway.unmute()
        for _ in self.each_tab():
            self.browser.wait("the stream", NO_BANNER)
            self.row("missed.bin")

    def test_a_page_whose_stream_is_held_back_reads_the_list(self):
        """A proxy may collect and compress the events whatever the header fields say."""
        gateway = Gateway()
        self.addCleanup(gateway.close)
        gateway.holds_streams = True
        self.visit("", gateway.address)
        for name in ("first.bin", "second.bin"):
            self.service.add(f"{FILES}/small/{name}", startsPaused=True)
            self.row(name)
        self.assertTrue(self.browser.run(NO_BANNER))
        gateway.holds_streams = False

    def test_an_address_with_a_user_name_and_a_password(self):
        """Bookmarks of pages behind a password contain them. `fetch` refuses URLs that do."""
        self.visit(address=ADDRESS.replace("://", "://anna:secret@"))
        self.service.add(f"{FILES}/small/named.bin", startsPaused=True)
        self.row("named.bin")

    def test_no_figure_of_a_silent_service_looks_current(self):
        """The banner is visible also while the details cover a phone, and below a scrolled list."""
        self.expected_complaints = ("ERR_", "Failed to load")
        self.service.add(f"{FILES}/slow/silent.bin")
        row = self.row("silent.bin")
        self.wait_held(row, 0)
        self.browser.click(f"{row} .name")
        self.browser.wait("the rate", "return document.querySelector('.details .figures').innerText.includes('/s')")
        self.gateway.cut()
        self.browser.wait("the banner", BANNER)
        current = self.browser.run("""
            return [...document.querySelectorAll('.rate-now, .row .rate, .details .figures, .rate-words')]
                .filter((each) => /[/]s/.test(each.textContent) && getComputedStyle(each).visibility !== 'hidden').map((each) => each.textContent)""")
        self.assertEqual(current, [])
        for width, height in ((390, 844), (320, 256)):
            self.browser.size(width, height)
            self.browser.run("scrollTo(0, 10000)")
            seen = """
                const banner = document.querySelector('#banner'), { left, top, width, height } = banner.getBoundingClientRect();
                return banner.contains(document.elementFromPoint(left + width / 2, top + height / 2))"""
            self.browser.wait(f"the banner at {width} by {height}", seen)

    def test_without_shared_workers_each_tab_has_its_stream(self):
        # The first page used another gateway. Its stream may stay open while the browser keeps the page for Back.
        gateway = Gateway()
        self.addCleanup(gateway.close)
        with self.without_shared_workers():
            self.visit("", gateway.address)
            self.wait_streams(1, gateway)
            self.assert_all_hear("own.bin")
            self.assert_notice_is_shown(gateway, "repaired")


if __name__ == "__main__":
    unittest.main()
