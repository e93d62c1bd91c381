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

    def test_the_timeline_goes_on_while_it_is_looked_at(self):
        self.service.add(f"{FILES}/slow/told.bin", startsPaused=True)
        row = self.row("told.bin")
        self.browser.click(f"{row} .name")
        self.browser.wait("the panel", "return document.querySelector('.timeline')")
        kinds = "return [...document.querySelectorAll('.timeline li')].map((each) => each.dataset.kind)"
        self.browser.click("#details [data-action=resume]")
        self.browser.wait("the beginning", f"{kinds}.includes('resumed')")
        self.wait_held(row, 0)
        # The buttons are made anew with each state: one that is pressed just then is gone.
        one = f"downloads/{self.service.downloads()[0]['id']}"
        self.service.call("POST", f"{one}/actions/pause")
        self.browser.wait("the pause", f"{kinds}.includes('paused')")
        self.wait_state(row, "paused")
        self.browser.click("#details [data-action=resume]")
        self.browser.wait("the second beginning", f"{kinds}.join().split('resumed').length >= 3")
        shown = self.browser.run("return document.querySelectorAll('.timeline li').length")
        told = self.service.call("GET", f"{one}/timeline")["notes"]
        self.assertLessEqual(shown, len(told), "nothing is told twice")

    def test_a_service_that_is_gone_is_not_complained_about_each_second(self):
        self.service.add(f"{FILES}/slow/gone.bin")
        row = self.row("gone.bin")
        self.wait_held(row, 0)
        self.browser.run("""
            const real = window.fetch;
            window.failed = 0;
            window.fetch = (address, ...rest) => String(address).includes('/segments')
                ? ((window.failed += 1), Promise.reject(new TypeError('Failed to fetch'))) : real(address, ...rest);
        """)
        self.browser.click(f"{row} .name")
        self.browser.wait("some attempts", "return window.failed > 2")
        self.assertEqual(self.browser.texts("#toasts .toast"), [])

    def test_no_row_is_lost_by_an_event_while_the_list_is_read(self):
        ids = self.browser.run("""
            return import('./page/store.js').then(async ({ Store }) => {
                const make = (id, state = 'queued') =>
                    ({ id, state, url: `http://h/${id}`, priority: 0, addedAt: 1, heldBytes: 0 });
                const store = new Store(), pages = [];
                store.page = () => new Promise((resolve) => pages.push(resolve));
                const answer = async (...downloads) => {
                    const next = downloads.at(-1) === 'more' ? downloads.pop() : undefined;
                    pages.shift()({ downloads, next });
                    await new Promise((resolve) => setTimeout(resolve));
                };
                const read = store.reload();
                store.apply(make('later', 'downloading'));
                await answer(make('first'), 'more');
                store.apply(make('last', 'downloading'));
                await answer(make('later'), 'more');
                store.apply(make('new'), true);
                await answer(make('last'));
                await read;
                return store.ids.map((id) => `${id} ${store.byId.get(id).state}`);
            });
        """)
        self.assertEqual(ids, ["first queued", "later downloading", "last downloading", "new queued"])

    def test_what_is_added_while_an_empty_list_is_read_is_shown(self):
        ids = self.browser.run("""
            return import('./page/store.js').then(async ({ Store }) => {
                const store = new Store();
                let answer;
                store.page = () => new Promise((resolve) => (answer = resolve));
                const read = store.reload();
                store.apply({ id: 'a', state: 'queued', url: 'http://h/a', priority: 0, addedAt: 1, heldBytes: 0 }, true);
                answer({ downloads: [] });
                await read;
                return store.ids;
            });
        """)
        self.assertEqual(ids, ["a"])

    def test_many_long_links_are_all_added(self):
        # More than one request may have in bytes, and fewer than it may have in number.
        self.browser.run("""
            const long = (number) => `http://127.0.0.1:9/${number}?signature=${'s'.repeat(4000)}`;
            document.querySelector('#add-button').click();
            const field = document.querySelector('#links');
            field.value = Array.from({ length: 300 }, (_, number) => long(number)).join('\\n');
            field.dispatchEvent(new Event('input'));
            document.querySelector('.options').open = true;
            document.querySelector('[name=startsPaused]').checked = true;
            document.querySelector('dialog .primary').click();
        """)
        self.no_dialog()
        self.assertEqual(len(self.service.downloads()), 300)

    def test_terms_of_somebody_elses_are_shown_as_they_are(self):
        terms = {"constructor": "one", "fact.error": "two", "toString": "three"}
        self.service.add(f"{FILES}/small/terms.bin", startsPaused=True, metadata=terms)
        self.browser.click(f"{self.row('terms.bin')} .name")
        self.browser.wait("the facts", "return document.querySelector('.facts')?.innerText.includes('three')")
        self.assertLessEqual(set(terms), set(self.browser.texts(".facts dt")))

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
