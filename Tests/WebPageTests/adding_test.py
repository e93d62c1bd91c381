"""The dialog for links: what it finds, shows, keeps and sends."""

import unittest

from support import FILES, PageTestCase

PASTE = """
    document.activeElement?.blur();
    const data = new DataTransfer();
    data.setData('text/plain', arguments[0]);
    document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
"""


class Adding(PageTestCase):
    def paste(self, text):
        """Ctrl-V on the page; waits for the dialog."""
        self.browser.run(PASTE, text)
        self.dialog()

    def links(self):
        return self.browser.run("return document.querySelector('#links').value.split('\\n').filter(Boolean)")

    def press_beside(self):
        """A press of the mouse next to the dialog."""
        press = [{"type": "pointerMove", "x": 40, "y": 400}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.browser.call("POST", "/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": press}]})

    def folder(self):
        return self.browser.run("const field = document.querySelector('[name=directory]'); return field.checkVisibility() ? field.value : null")

    def test_what_was_found_is_listed_before_it_is_added(self):
        self.browser.press("a")
        self.browser.type(f"film one,{FILES}/small/a.bin,734\nmagnet:?xt=1\nnothing")
        self.entries([f"link {FILES}/small/a.bin", "odd magnet:?xt=1", "odd nothing"])
        self.assertEqual(
            self.browser.texts("#links-say"), ["1 link · 2 lines without a link are ignored · not supported: magnet"])
        self.browser.click("dialog .primary")
        self.no_dialog()
        self.assertEqual([each["url"] for each in self.service.downloads()], [f"{FILES}/small/a.bin"])

    def entries(self, expected):
        """Waits until the dialog lists these."""
        script = "return [...document.querySelectorAll('#links-list li')].map((each) => `${each.className} ${each.textContent}`)"
        self.browser.wait(f"the list to be {expected}", script.replace("return ", "return JSON.stringify(") + ") === JSON.stringify(a0)", expected)

    def is_ready(self):
        return not self.browser.run("return document.querySelector('dialog .primary').disabled")

    def test_only_the_links_that_are_shown_are_added(self):
        """The service reads the text after a pause. Until its answer is shown, nothing can be added."""
        field = """
            const field = document.querySelector('#links');
            field.value = arguments[0];
            field.dispatchEvent(new Event('input', { bubbles: true }));"""
        self.browser.press("a")
        self.dialog()
        self.browser.run(field, f"see {FILES}/small/a.bin.")
        self.entries([f"link {FILES}/small/a.bin"])
        self.assertTrue(self.is_ready())
        self.browser.run(field + "document.querySelector('#add-form').requestSubmit();", f"see {FILES}/small/b.bin.")
        self.assertFalse(self.is_ready())
        self.assertEqual(self.service.downloads(), [])
        self.entries([f"link {FILES}/small/b.bin"])
        self.browser.run(field, f"see {FILES}/small/c.bin.")
        self.browser.run(field, f"{FILES}/small/d.bin\n")
        self.assertTrue(self.is_ready(), "a plain list of links needs no answer")
        self.browser.click("dialog .primary")
        self.no_dialog()
        self.assertEqual([each["url"] for each in self.service.downloads()], [f"{FILES}/small/d.bin"])

    def test_without_the_service_the_dialog_says_so(self):
        self.expected_complaints = ("api/v1/links", "ERR_BLOCKED_BY_CLIENT")
        self.browser.devtools("Network.enable")
        self.browser.devtools("Network.setBlockedURLs", urls=["*/api/v1/links*"])
        try:
            self.browser.press("a")
            self.browser.type(f"see {FILES}/small/a.bin.")
            alert = "return document.querySelector('dialog [role=alert]').textContent"
            said = self.browser.wait("the complaint", alert)
            self.assertIn("towd", said)
            self.assertFalse(self.is_ready())
        finally:
            self.browser.devtools("Network.setBlockedURLs", urls=[])
        self.entries([f"link {FILES}/small/a.bin"])
        self.assertEqual(self.browser.run(alert), "")
        self.assertTrue(self.is_ready())

    def test_a_pasted_command_offers_its_headers(self):
        self.paste(f"curl '{FILES}/small/a.bin' -H 'Referer: http://a.test/' -b 'id=CANARY'")
        self.assertEqual(self.links(), [f"{FILES}/small/a.bin"])
        self.assertEqual(self.browser.texts("#secrets"), [""], "nothing is sent unless the user wants it")
        self.assertEqual(self.browser.texts("#offer"), ["Use the headers of the command: Referer, Cookie"])
        self.browser.click("#offer")
        host = FILES.removeprefix("http://")
        self.assertEqual(self.browser.texts("#secrets"), [f"The headers Referer, Cookie are sent to {host}."])
        self.assertFalse(self.browser.run("return document.querySelector('#offer').checkVisibility()"))
        kept = self.browser.run("return JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
        self.assertNotIn("CANARY", kept)

    def test_what_is_sent_is_said_before_it_is_sent(self):
        """Nothing in the dialog invites a password manager, which would fill in the access token."""
        self.browser.press("a")
        self.browser.type(f"{FILES}/small/secret.bin")
        self.browser.run("document.querySelector('.options').open = true")
        invited = self.browser.run("""
            return [...document.querySelectorAll('dialog input')]
                .filter((each) => each.type === 'password' || /user|pass|login|token/i.test(each.name + each.autocomplete))
                .map((each) => each.outerHTML)""")
        self.assertEqual(invited, [])
        self.assertEqual(self.browser.texts("#secrets"), [""])
        self.browser.click("[name=user]")
        self.browser.type("ann")
        self.browser.run("document.querySelector('.options').open = false")
        host = FILES.removeprefix("http://")
        self.assertEqual(self.browser.texts("#secrets"), [f"The user name “ann” and its password are sent to {host}."])
        self.browser.click("dialog .primary")
        self.browser.wait("the complaint", "return document.querySelector('dialog [role=alert]').textContent.includes('colon')")
        self.assertEqual(self.service.downloads(), [])
        self.browser.run("document.querySelector('.options').open = true")
        self.browser.click("[name=user]")
        self.browser.type(":CANARY")
        self.browser.click("[name=headers]")
        self.browser.type("Referer: https://a.test/\nX-Key: CANARY")
        said = self.browser.texts("#secrets")[0]
        self.assertIn(f"The headers Referer, X-Key are sent to {host}.", said)
        self.assertNotIn("CANARY", said)
        self.browser.click("dialog .primary")
        self.no_dialog()
        self.row("secret.bin")

    def test_typed_links_are_kept(self):
        """Escape, a press beside the dialog and a reload lose nothing. Cancel does."""
        link = f"{FILES}/small/kept.bin"

        def dismissed_by(act):
            act()
            self.no_dialog()
            self.browser.press("a")
            self.dialog()

        self.browser.press("a")
        self.browser.type(link)
        self.browser.run("document.querySelector('.options').open = true")
        self.browser.click("[name=group]")
        self.browser.type("films")
        self.browser.click("[name=user]")
        self.browser.type("ann:CANARY")
        dismissed_by(lambda: self.browser.press("Escape"))
        self.assertEqual(self.links(), [link])
        self.assertEqual(self.browser.run("return document.querySelector('[name=group]').value"), "films")
        self.assertNotIn("CANARY", self.browser.run("return JSON.stringify(sessionStorage)"))
        dismissed_by(self.press_beside)
        self.assertEqual(self.links(), [link])

        def load_again():
            self.browser.reload()
            self.listed()

        dismissed_by(load_again)
        self.assertEqual(self.links(), [link])
        # Pasted links are added without the kept ones, which stay.
        self.browser.press("Escape")
        self.no_dialog()
        self.paste(f"{FILES}/small/pasted.bin")
        self.assertEqual(self.links(), [f"{FILES}/small/pasted.bin"])
        self.browser.click("dialog .primary")
        self.no_dialog()
        self.row("pasted.bin")
        self.browser.press("a")
        self.dialog()
        self.assertEqual(self.links(), [link])
        dismissed_by(lambda: self.browser.click("dialog footer .quiet"))
        self.assertEqual(self.links(), [])

    def test_keys_and_pastes_count_at_once_after_a_dialog_closed(self):
        """The field of a closed dialog has the focus until the browser updates the page."""
        close = "document.querySelector('dialog').close(); const field = document.activeElement;"
        self.browser.press("a")
        self.dialog()
        self.browser.run(
            f"{close} field.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'a', bubbles: true, cancelable: true }}))")
        self.dialog()
        self.browser.run(f"{close} {PASTE.replace('document.body', 'field')}", f"{FILES}/small/at-once.bin")
        self.dialog()
        self.assertEqual(self.links(), [f"{FILES}/small/at-once.bin"])

    def stored(self):
        return self.browser.run("return JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")

    def test_no_secret_of_a_link_is_stored(self):
        """Escape keeps the typed text; a reload keeps the links without their passwords."""
        for text, link in (
            (f"http://ann:CANARY@{FILES[7:]}/small/a.bin", f"http://ann@{FILES[7:]}/small/a.bin"),
            (f"curl {FILES}/small/a.bin -H 'Cookie: CANARY' \\\n  -u ann:CANARY", f"{FILES}/small/a.bin"),
        ):
            self.browser.click("#add-button")
            self.dialog()
            self.browser.type(text)
            self.assertNotIn("CANARY", self.stored())
            self.browser.press("Escape")
            self.no_dialog()
            self.browser.click("#add-button")
            self.dialog()
            self.assertEqual(self.browser.run("return document.querySelector('#links').value"), text)
            self.browser.wait("the service", "return !document.querySelector('dialog [type=submit]').disabled")
            self.assertNotIn("CANARY", self.stored())
            self.browser.reload()
            self.listed()
            self.browser.click("#add-button")
            self.dialog()
            self.assertEqual(self.links(), [link])
            self.browser.click("dialog footer .quiet")
            self.no_dialog()

    def test_a_typed_folder_is_kept_and_shown_in_full(self):
        folder = "/".join(f"a-rather-long-name-{number}" for number in range(12))
        self.browser.press("a")
        self.browser.click("[name=directory]")
        self.browser.type(folder)
        self.assertEqual(self.browser.texts("#folder-path"), [folder])
        self.assertTrue(self.browser.run("return document.querySelector('#folder-path').checkVisibility()"))
        self.browser.press("Escape")
        self.browser.reload()
        self.listed()
        self.browser.press("a")
        self.dialog()
        self.assertEqual(self.folder(), folder)
        self.assertEqual(self.browser.texts("#folder-path"), [folder])
        self.browser.click("dialog footer .quiet")

    def test_links_of_another_page_wait_for_the_open_dialog(self):
        bookmarklet = "location.hash = 'add=' + encodeURIComponent(arguments[0])"
        typed, first, second = (f"{FILES}/small/{name}.bin" for name in ("typed", "first", "second"))
        self.browser.press("a")
        self.browser.type(typed)
        self.browser.run(bookmarklet, first)
        self.browser.wait("both links", "return document.querySelector('#links').value.includes(a0)", first)
        self.assertEqual(self.links(), [typed, first])
        self.assertTrue(self.browser.run("return document.querySelector('dialog .primary').disabled"))
        self.browser.click("dialog footer .quiet")
        self.no_dialog()
        self.browser.press("s")
        self.dialog()
        self.browser.run(bookmarklet, second)
        self.browser.click("dialog .dialog-close")
        self.browser.wait("the other dialog", "return document.querySelector('#links')?.value.includes(a0)", second)

    def test_the_folder_is_always_shown(self):
        for typed in ("films", ""):
            self.browser.press("a")
            self.browser.type(f"{FILES}/small/{typed}1.bin")
            self.browser.click("[name=directory]")
            self.browser.type(typed)
            self.browser.click("dialog .primary")
            self.no_dialog()
            self.browser.press("a")
            self.dialog()
            self.assertEqual(self.folder(), "films")
            self.browser.click("dialog footer .quiet")
            self.no_dialog()
        self.assertEqual({each["directory"].rsplit("/", 1)[1] for each in self.service.downloads()}, {"films"})


if __name__ == "__main__":
    unittest.main()
