"""The page by keyboard alone, for assistive technology, and on a phone."""

import os
import time
import unittest

from browser import PATIENCE, BrowserError
from support import ADDRESS, FILES, TOKEN, PageTestCase

# The rules of WCAG 2.2 A and AA, and what its makers call best practice.
AXE = """
    const options = { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] };
    return axe.run(document, options).then(({ violations }) => violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + ' ' + node.failureSummary).join(' | ')}`));
"""
# A laptop, a large screen and a phone.
SIZES = {"": (1280, 860), "-1920": (1920, 1080), "-390": (390, 844)}
# Whether what has the focus shows it.
FOCUS_SHOWS = """
    const style = getComputedStyle(document.activeElement);
    return style.outlineStyle !== 'none' && Number.parseFloat(style.outlineWidth) >= 1;
"""


class Assistive(PageTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(os.environ["TOWLINE_AXE"], encoding="utf-8") as file:
            cls.axe = file.read()

    def check(self, where, reopen=None):
        """Nothing serious or critical, in each size, light and dark. `reopen` opens what a change of the size closes."""
        for suffix, size in SIZES.items():
            self.browser.size(*size)
            if reopen:
                reopen()
            for scheme in ("light", "dark"):
                self.browser.prefer(color_scheme=scheme, reduced_motion="reduce")
                self.browser.run(f"if (!window.axe) {{ {self.axe} }}")
                with self.subTest(where=where, size=size, scheme=scheme):
                    self.assertEqual(self.browser.run(AXE), [])
                    self.assertTrue(self.browser.run("return document.documentElement.scrollWidth <= innerWidth"))
                self.picture(f"{where}{suffix}-{scheme}")
        self.browser.size(*SIZES[""])

    def test_nothing_serious_is_found(self):
        self.check("empty")
        # Those that end come first: as many as may run at once go on for as long as the test looks at them.
        self.service.add(f"{FILES}/missing/failed.bin", maximumTries=1)
        self.service.add(f"{FILES}/small/finished.bin")
        self.wait_state(self.row("failed.bin"), "failed")
        self.wait_state(self.row("finished.bin"), "finished")
        self.service.add(*[f"{FILES}/slow/{number}.bin" for number in range(3)], group="films")
        self.service.add(f"{FILES}/small/paused.bin", startsPaused=True)
        self.service.add(f"{FILES}/small/waits.bin", priority=-1)
        self.wait_held(self.row("0.bin"), 0)
        self.check("list")
        self.browser.click(f"{self.row('0.bin')} .name")
        self.browser.wait("connections", "return document.querySelector('.legend')?.innerText.includes('Connection')")
        self.check("details")
        self.browser.press("Escape")
        for key, name in (("a", "add"), ("s", "settings"), ("?", "help"), ("l", "limit")):
            self.browser.press(key)
            if name == "add":
                self.browser.run("document.querySelector('.options').open = true")
            opened = "return document.querySelector('dialog[open], [popover]:popover-open')"
            self.browser.wait(name, opened)

            def reopen():
                if not self.browser.run(opened):
                    self.browser.press("l")
                    self.browser.wait("the panel", opened)

            self.check(name, reopen)
            self.browser.press("Escape")
            self.browser.wait("to close", f"return !(() => {{ {opened} }})()")

        def menu():
            self.browser.run("document.querySelector('.row').focus()")
            self.browser.press("m")
            self.browser.wait("the menu", "return document.querySelector('[popover]:popover-open')")

        self.check("menu", menu)
        self.browser.run("document.querySelector('.row').focus()")
        self.browser.press("Shift+ArrowDown", "Delete")
        self.dialog()
        self.check("question")
        self.browser.press("Escape")
        self.no_dialog()
        self.check("selection")

    def test_nothing_serious_is_found_in_the_other_dialogs(self):
        self.expected_complaints = ("401",)
        root = self.service.call("GET", "settings")["downloadsDirectory"]
        self.service.add(f"{FILES}/small/lost.bin", directory="gone", startsPaused=True)
        row = self.row("lost.bin")
        os.rmdir(f"{root}/gone")
        self.browser.click(f"{row} [data-do=primary]")
        self.wait_state(row, "failed")
        self.browser.wait("the offer", "return !document.querySelector('#lost').hidden")
        self.check("folder-offer")
        self.browser.click("#lost button")
        self.dialog()
        self.check("folder")
        self.browser.press("Escape")
        self.no_dialog()
        self.browser.call("DELETE", "/cookie")
        self.browser.open("about:blank")
        self.browser.open(ADDRESS)
        self.dialog()
        self.check("sign-in")

    def test_the_list_is_a_grid_that_says_where_one_is(self):
        self.service.add(*[f"{FILES}/small/{number:02}.bin" for number in range(30)], startsPaused=True)
        self.row("00.bin")
        self.browser.run("document.querySelector('.row').focus()")
        self.browser.press("End")
        described = self.browser.run("""
            const row = document.activeElement, bar = row.querySelector('[role=progressbar]');
            const words = row.getAttribute('aria-labelledby').split(' ').map((id) => document.getElementById(id).textContent);
            return [row.getAttribute('role'), row.getAttribute('aria-rowindex'), row.closest('[role=grid]').getAttribute('aria-rowcount'),
                words[0], words[1], bar.getAttribute('aria-label'), bar.getAttribute('aria-valuetext') !== null];
        """)
        self.assertEqual(described, ["row", "30", "30", "29.bin", "Paused", "Progress of 29.bin", True])

    def test_everything_by_keyboard(self):
        browser = self.browser
        browser.press("a")
        self.dialog()
        browser.type(f"{FILES}/slow/keys.bin\n{FILES}/small/second.bin")
        browser.press("Control+Enter")
        self.no_dialog()
        row = self.row("keys.bin")
        self.wait_held(row, 0)

        # From the top of the page to the list by Tab alone; the focus can be seen on the way.
        browser.run("document.activeElement.blur()")
        for _ in range(30):
            browser.press("Tab")
            self.assertTrue(browser.run(FOCUS_SHOWS), f"the focus on {self.focus()} cannot be seen")
            if self.focus() == "row":
                break
        self.assertEqual(self.focus(), "row")
        browser.press("Home", "Space")
        self.wait_state(row, "paused")
        browser.press("Space")
        self.wait_state(row, "connecting", "downloading", "queued")

        browser.press("Tab")
        self.assertEqual(self.focus(), "primary")
        browser.press("Tab")
        self.assertEqual(self.focus(), "menu")
        browser.press("Enter", "ArrowDown", "ArrowDown", "Escape")
        self.assertEqual(self.focus(), "menu", "the menu gives the focus back")

        browser.run("document.querySelector('.row').focus()")
        browser.press("Enter")
        self.assertEqual(self.focus(), "details")
        browser.press("Tab", "Escape")
        self.assertEqual(self.focus(), "row", "closing the details gives the focus back")

        browser.press("Alt+ArrowDown")
        browser.wait("the new order", "return document.querySelector('.row .name').textContent === 'second.bin'")
        self.assertEqual(self.focus(), "row", "the focus goes with the row")

        browser.press("/")
        self.assertEqual(self.focus(), "search")
        browser.type("keys")
        browser.wait("one row", "return document.querySelectorAll('.row').length === 1")
        browser.press("Escape")
        browser.wait("both rows", "return document.querySelectorAll('.row').length === 2")

        browser.run("document.querySelector(arguments[0]).focus()", row)
        browser.press("c")
        self.dialog()
        browser.press("Enter")
        self.wait_state(row, "cancelled")
        browser.press("Delete")
        self.dialog()
        browser.press("Enter")
        browser.wait("one row", "return document.querySelectorAll('.row').length === 1")
        self.assertEqual(self.focus(), "row", "the neighbour takes the focus over")
        self.assertEqual([each["url"] for each in self.service.downloads()], [f"{FILES}/small/second.bin"])

        browser.press("?")
        self.assertEqual(self.dialog(), "Keyboard shortcuts")
        browser.press("Escape")

    def test_letters_can_be_switched_off(self):
        self.browser.press("s")
        self.dialog()
        self.browser.click("[name=keys]")
        self.browser.press("Escape")
        self.no_dialog()
        self.browser.press("a", "?", "/")
        self.assertFalse(self.browser.run("return document.querySelector('dialog[open]') !== null || document.activeElement.id === 'search'"))

    def wait_sign_in(self):
        """Waits for the dialog to sign in. The page may load again in the meantime, which interrupts scripts."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.browser.run("return document.querySelector('dialog[open] #token') !== null"):
                    return
            except BrowserError:
                pass
            self.assertLess(time.monotonic(), deadline, "no dialog to sign in")
            time.sleep(0.05)

    def test_signing_out(self):
        self.expected_complaints = ("401",)
        self.service.add(f"{FILES}/small/private.bin", startsPaused=True)
        self.row("private.bin")
        cookies = [each["value"] for each in self.browser.call("GET", "/cookie") if each["name"].startswith("towline-")]
        self.assertEqual(len(cookies), 1)
        self.assertNotIn(cookies[0], (None, "", TOKEN), "the session is not the token")
        self.browser.press("s")
        self.dialog()
        self.browser.click(".sign-out")
        self.wait_sign_in()
        self.assertEqual(self.dialog(), "Sign in")
        self.assertEqual(self.browser.call("GET", "/cookie"), [])
        self.assertNotIn("private.bin", self.browser.run("return document.documentElement.textContent"), "no download stays")
        self.browser.reload()
        self.wait_sign_in()
        self.browser.type(TOKEN)
        self.browser.press("Enter")
        self.no_dialog()
        self.row("private.bin")

    def test_a_phone(self):
        self.service.add(f"{FILES}/slow/phone-with-a-rather-long-name-that-has-no-place-here.bin")
        self.service.add(*[f"{FILES}/small/{number}.bin" for number in range(20)], startsPaused=True)
        row = self.row("phone-with-a-rather-long-name-that-has-no-place-here.bin")
        self.wait_held(row, 0)
        fits = "return document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll('.row, .bar, .details, dialog')]" \
               ".every((each) => each.getBoundingClientRect().right <= innerWidth + 0.5)"
        self.browser.size(360, 740)
        self.browser.wait("rows that fit", fits)
        self.picture("phone")
        self.browser.click(f"{row} .name")
        self.browser.wait("the details", "return document.querySelector('#details').getBoundingClientRect().width === innerWidth")
        self.assertTrue(self.browser.run(fits))
        self.picture("phone-details")
        self.browser.click(".details-close")
        self.browser.click("#add-button")
        self.dialog()
        self.assertTrue(self.browser.run(fits))
        self.browser.press("Escape")
        small = self.browser.run("""
            return [...document.querySelectorAll('.row button, .bar button, .summary button')]
                .filter((each) => each.offsetWidth && (each.offsetWidth < 36 || each.offsetHeight < 36)).map((each) => each.outerHTML)""")
        self.assertEqual(small, [], "too small for a finger")

    def test_less_motion(self):
        self.service.add(f"{FILES}/slow/calm.bin")
        self.wait_held(self.row("calm.bin"), 0)
        moving = "return document.getAnimations().length"
        self.assertEqual(self.browser.run(moving), 0)


if __name__ == "__main__":
    unittest.main()
