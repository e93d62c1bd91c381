"""That the page goes on telling what is so, whatever events come and however they come."""

import unittest

from support import FILES, PageTestCase


class Upkeep(PageTestCase):
    def test_a_word_to_all_is_seen_on_rows_that_wait_for_their_turn(self):
        before = self.service.call("GET", "settings")["maximumRunning"]
        self.addCleanup(self.service.call, "PATCH", "settings", {"maximumRunning": before})
        self.service.call("PATCH", "settings", {"maximumRunning": 1})
        self.service.add(*[f"{FILES}/slow/{number}.bin" for number in range(4)])
        rows = [self.row(f"{number}.bin") for number in range(4)]
        self.wait_state(rows[0], "downloading")
        self.assertEqual([self.state(row) for row in rows[1:]], ["queued"] * 3)
        self.browser.click("#pause-all")
        for row in rows:
            self.wait_state(row, "paused")
        self.browser.click("#resume-all")
        self.wait_state(rows[0], "downloading")
        for row in rows[1:]:
            self.wait_state(row, "queued")

    def test_only_a_wrong_token_is_called_one(self):
        self.browser.run("""
            import('./page/dialogs.js').then(({ signIn }) =>
                signIn(() => Promise.reject(Object.assign(new Error('see --host'), { status: 403 }))));
            """)
        self.dialog()
        self.browser.type("x")
        self.browser.press("Enter")
        said = self.browser.wait("the refusal", "return document.querySelector('#token-say').textContent")
        self.assertIn("see --host", said)


if __name__ == "__main__":
    unittest.main()
