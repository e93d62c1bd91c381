"""What somebody does with the page, in a real browser with a real service behind it."""

import time
import unittest

from support import ADDRESS, FILES, TOKEN, PageTestCase
from browser import settled

DARK = "return matchMedia('(prefers-color-scheme: dark)').matches"
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"


class Downloading(PageTestCase):
    def add_on_page(self, *urls):
        """Adds through the dialog, with the mouse and the keyboard as they come."""
        self.browser.click("#add-button")
        self.dialog()
        self.browser.type("\n".join(urls))
        self.browser.click("dialog .primary")
        self.no_dialog()

    def test_a_download_moves_pauses_stands_still_and_goes_on_after_a_reload(self):
        self.add_on_page(f"{FILES}/slow/one.bin")
        row = self.row("one.bin")
        self.wait_state(row, "downloading")
        self.wait_held(row, 0)
        self.wait_held(row, self.held(row))
        self.picture("moving")

        self.browser.click(f"{row} [data-do=primary]")
        self.wait_state(row, "paused")
        before = self.assert_still(row, "/slow/one.bin")
        self.assertGreater(before[0], 0)

        self.browser.reload()
        row = self.row("one.bin")
        self.assertEqual(self.state(row), "paused")
        self.assertAlmostEqual(settled(lambda: self.held(row), 0.5), before[0], places=2)

        self.browser.click(f"{row} [data-do=primary]")
        self.wait_state(row, "connecting", "downloading")
        self.wait_held(row, before[0])

    def test_cancelling_one_leaves_the_other_alone(self):
        self.service.add(f"{FILES}/slow/kept.bin", f"{FILES}/slow/given-up.bin")
        kept, given_up = self.row("kept.bin"), self.row("given-up.bin")
        for row in (kept, given_up):
            self.wait_held(row, 0)
        self.browser.click(f"{given_up} [data-do=menu]")
        self.browser.click("[role=menuitem]:has(.icon-cancel)")
        self.assertIn("given-up.bin", self.dialog())
        self.browser.click("dialog .danger")
        self.wait_state(given_up, "cancelled")
        self.wait_held(kept, self.held(kept))
        self.assertEqual(self.state(kept), "downloading")

    def test_a_question_that_is_declined_changes_nothing(self):
        self.service.add(f"{FILES}/slow/stays.bin")
        row = self.row("stays.bin")
        self.wait_held(row, 0)
        for icon in ("cancel", "remove"):
            self.browser.click(f"{row} [data-do=menu]")
            self.browser.click(f"[role=menuitem]:has(.icon-{icon})")
            self.dialog()
            self.browser.click("dialog footer .quiet")
            self.no_dialog()
        self.assertEqual(len(self.service.downloads()), 1)
        self.wait_held(row, self.held(row))

    def test_fifty_links_are_dropped(self):
        links = [f"{FILES}/small/{number}.bin" for number in range(50)]
        self.browser.drop({"text/plain": "\n".join(links)})
        self.assertEqual(self.dialog(), "Add links")
        self.assertIn("50", self.browser.texts("#links-say")[0])
        self.assertEqual(self.service.downloads(), [], "nothing is added before it is confirmed")
        self.browser.press("Enter")
        self.no_dialog()
        self.browser.wait("50 rows", "return document.querySelector('[role=grid]').getAttribute('aria-rowcount') === '50'")
        self.browser.wait("all to finish", "return document.querySelector('[data-filter=finished] .number').textContent === '50'")
        self.assertEqual({each["url"] for each in self.service.downloads()}, set(links))

    def test_two_of_one_name_are_told_apart_by_their_hosts(self):
        hosts = ["127.0.0.1:9", "localhost:9"]
        for host in hosts:
            self.service.add(f"http://{host}/same.bin", startsPaused=True)
        self.browser.wait("both rows", "return document.querySelectorAll('.row .name').length === 2")
        self.assertEqual(sorted(self.browser.texts(".row .host")), sorted(hosts))

    def test_links_of_a_dropped_page_are_its_anchors(self):
        page = f"<p>see <a href='{FILES}/small/a.bin?x=1&amp;y=2'>this</a> and <a href='{FILES}/small/b.bin'>that</a><img src=x onerror=alert(1)>"
        self.browser.drop({"text/html": page, "text/plain": "see this and that"})
        self.dialog()
        links = self.browser.run("return document.querySelector('#links').value.trim().split('\\n')")
        self.assertEqual(links, [f"{FILES}/small/a.bin?x=1&y=2", f"{FILES}/small/b.bin"])

    def test_links_are_dropped_on_what_has_just_appeared(self):
        veil = "return !document.querySelector('#drop').hidden"

        def replaced():
            self.assertTrue(self.browser.run(veil))
            self.browser.run("for (const each of document.querySelectorAll('#empty *')) each.replaceWith(each.cloneNode(true))")

        self.browser.drop({"text/plain": f"{FILES}/small/a.bin"}, held=replaced)
        self.dialog()
        self.assertFalse(self.browser.run(veil))

    def test_what_stands_in_an_empty_list_stays_while_it_is_true(self):
        self.browser.run("window.first = document.querySelector('#empty h2')")
        self.browser.click("#search")
        self.browser.type("nothing")
        self.browser.wait("no matches", "return document.querySelector('#empty h2') !== window.first")
        self.browser.run("window.first = document.querySelector('#empty h2')")
        self.browser.type("s")
        asked = "return performance.getEntriesByType('resource').some((each) => each.name.includes('nothings'))"
        self.browser.wait("the list", asked)
        time.sleep(0.3)
        self.assertTrue(self.browser.run("return document.querySelector('#empty h2') === window.first"))

    def test_what_is_refused_is_said_and_can_be_mended(self):
        self.browser.press("a")
        self.browser.type(f"{FILES}/small/refused.bin")
        self.browser.run("document.querySelector('.options').open = true; document.querySelector('[name=rateLimit]').value = 'fast'")
        self.browser.click("dialog .primary")
        self.browser.wait("the complaint", "return document.querySelector('dialog [role=alert]').textContent.includes('10M')")
        self.browser.run("document.querySelector('[name=rateLimit]').value = '10M'")
        self.browser.click("dialog .primary")
        self.no_dialog()
        self.row("refused.bin")

    def test_the_segment_map_says_and_shows_what_is_there(self):
        # A hundredth of it takes seconds, all of it minutes.
        self.service.add(f"{FILES}/mapped/mapped.bin", rateLimit=1_000_000)
        row = self.row("mapped.bin")
        self.wait_held(row, 0.004)
        self.browser.click(f"{row} .name")
        self.browser.wait("connections", "return document.querySelector('.legend')?.innerText.includes('Connection')")
        words = self.browser.run("return document.querySelector('.map').getAttribute('aria-label')")
        self.assertRegex(words, r"^\d+\s% downloaded; byte ranges: \d+; active connections: [1-9]\d*$")
        there = "return Number.parseInt(document.querySelector('.map').getAttribute('aria-label'), 10)"
        self.browser.wait("the map to fill", f"{there} > a0", self.browser.run(there))
        # The picture itself: cells that are there, cells that are not, and one of a connection.
        colours = self.browser.run("""
            const canvas = document.querySelector('.map'), scale = canvas.width / canvas.clientWidth;
            const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height), seen = new Set();
            for (let y = 5; y < canvas.clientHeight; y += 12) for (let x = 5; x < canvas.clientWidth; x += 12) {
                const at = 4 * (Math.floor(y * scale) * canvas.width + Math.floor(x * scale));
                seen.add([...data.slice(at, at + 4)].join());
            }
            return [...seen];
        """)
        self.assertGreaterEqual(len(colours), 3, colours)
        self.picture("segments")
        self.browser.click("#details [data-action=pause]")
        self.browser.wait("no connection", "return !document.querySelector('.legend').innerText.includes('Connection')")
        self.assertIn("Downloaded:", self.browser.texts(".legend")[0])

    def test_the_details_tell_the_timeline_and_change_the_download(self):
        # Nothing listens there: each attempt that fails is noted.
        self.service.add("http://127.0.0.1:1/told.bin")
        row = self.row("told.bin")
        self.wait_state(row, "waiting")
        self.browser.click(f"{row} .name")
        self.browser.wait("a note", "return document.querySelectorAll('.timeline li').length > 0")
        self.assertIn("http://127.0.0.1:1/told.bin", self.browser.texts(".facts dd"))
        self.browser.run("document.querySelector('.controls input').focus(); document.activeElement.select()")
        self.browser.type("7")
        self.browser.press("Enter")
        self.browser.wait("the answer", "return document.querySelector('.field-note.good')?.textContent === 'Saved'")
        self.assertEqual(self.service.downloads()[0]["priority"], 7)

    def test_the_limit_for_all_is_set_and_taken_off(self):
        self.browser.press("l")
        self.browser.type("3M")
        self.browser.press("Enter")
        self.browser.wait("the limit", "return document.querySelector('#limit-label').textContent.includes('3.0')")
        self.assertEqual(self.service.call("GET", "settings")["rateLimit"], 3 << 20)
        self.browser.click("#limit-button")
        self.browser.click(".chip")
        self.browser.wait("no limit", "return document.querySelector('#limit-label').textContent === 'No limit'")
        self.assertFalse(self.service.call("GET", "settings").get("rateLimit"))

    def test_a_limit_that_was_set_elsewhere_is_shown(self):
        self.service.call("PATCH", "settings", {"rateLimit": 400 << 10})
        self.browser.wait("the limit", "return document.querySelector('#limit-label').textContent.includes('400')")
        self.service.call("PATCH", "settings", {"rateLimit": None})
        self.browser.wait("no limit", "return document.querySelector('#limit-label').textContent === 'No limit'")

    def test_all_pause_and_all_resume(self):
        self.service.add(f"{FILES}/slow/1.bin", f"{FILES}/slow/2.bin")
        rows = [self.row("1.bin"), self.row("2.bin")]
        for row in rows:
            self.wait_state(row, "downloading")
        self.browser.click("#pause-all")
        for row in rows:
            self.wait_state(row, "paused")
        self.browser.wait("the button", "return document.querySelector('#resume-all:enabled')")
        self.browser.click("#resume-all")
        for row in rows:
            self.wait_state(row, "downloading")

    def test_ends_are_announced(self):
        # One that the page knows: whose end is news, however late it is heard.
        self.service.add(f"{FILES}/small/done.bin", startsPaused=True)
        self.browser.click(f"{self.row('done.bin')} [data-do=primary]")
        self.browser.wait("the words", "return document.querySelector('#said').textContent.includes('done.bin has finished')")

    def test_search_and_filters(self):
        self.service.add(*[f"{FILES}/small/{name}.bin" for name in ("apple", "pear")], startsPaused=True)
        self.service.add(f"{FILES}/small/plum.bin")
        names = "return [...document.querySelectorAll('.row .name')].map((each) => each.textContent).sort().join() === a0"
        self.browser.wait("plum to finish", "return document.querySelector('[data-filter=finished] .number').textContent === '1'")
        self.browser.click("[data-filter=paused]")
        self.browser.wait("those paused", names, "apple.bin,pear.bin")
        self.browser.press("/")
        self.browser.type("PEA")
        self.browser.wait("one", names, "pear.bin")
        self.browser.type("ch")
        self.browser.wait("words instead of rows", "return document.querySelector('#empty h2')?.textContent === 'No matches'")
        self.browser.click("#empty button")
        self.browser.wait("all", names, "apple.bin,pear.bin,plum.bin")

    def test_a_shown_name_is_found(self):
        """Names that the URL contains percent-encoded, in any letter case and Unicode form, words in any order."""
        self.service.add(f"{FILES}/small/My%20Holiday%20%D0%A4%D0%B8%D0%BB%D1%8C%D0%BC%20Cafe%CC%81.mkv", startsPaused=True)
        self.service.add(f"{FILES}/small/other.mkv", startsPaused=True)
        self.row("other.mkv")
        count = "return document.querySelectorAll('.row').length === a0"
        for text in ("my holiday", "фильм my", "CAFÉ", "Cafe\u0301"):
            self.browser.run("""
                const field = document.querySelector('#search');
                field.value = arguments[0];
                field.dispatchEvent(new Event('input', { bubbles: true }));""", text)
            self.browser.wait(f"one row for {text}", count, 1)
            self.browser.run("document.querySelector('#search').value = ''; document.querySelector('#search').dispatchEvent(new Event('input', { bubbles: true }))")
            self.browser.wait("both rows", count, 2)

    def test_the_order_of_the_queue_changes(self):
        for name in "abc":
            self.service.add(f"{FILES}/small/{name}.bin", name=f"{name}.bin", startsPaused=True)
        order = "return [...document.querySelectorAll('.row .name')].map((each) => each.textContent[0]).join('') === a0"
        self.browser.wait("the list", order, "abc")
        self.browser.click(f"{self.row('c.bin')} [data-do=menu]")
        self.browser.click("[role=menuitem]:has(.icon-top)")
        self.browser.wait("c in front", order, "cab")
        self.browser.press("Alt+ArrowDown")
        self.browser.wait("c second", order, "acb")
        self.wait_order("acb")
        self.browser.run("document.querySelector('#order').value = 'name'; document.querySelector('#order').dispatchEvent(new Event('change'))")
        self.browser.wait("by name", order, "abc")
        self.browser.click("#direction")
        self.browser.wait("by name, the other way", order, "cba")

    def test_moves_reach_the_service_in_the_order_they_were_made(self):
        for name in "abc":
            self.service.add(f"{FILES}/small/{name}.bin", name=f"{name}.bin", startsPaused=True)
        order = "return [...document.querySelectorAll('.row .name')].map((each) => each.textContent[0]).join('') === a0"
        self.browser.wait("the list", order, "abc")
        # The first one is long on its way.
        self.browser.run(
            "const send = window.fetch; let isFirst = true; window.answered = 0;"
            "window.fetch = async (...call) => {"
            "  if (call[1]?.method !== 'PATCH') return send(...call);"
            "  if (isFirst) { isFirst = false; await new Promise((go) => setTimeout(go, 500)); }"
            "  const answer = await send(...call);"
            "  window.answered += 1;"
            "  return answer;"
            "}")
        self.browser.click(f"{self.row('a.bin')} .name")
        self.browser.press("Alt+ArrowDown", "Alt+ArrowDown")
        self.browser.wait("a at the end", order, "bca")
        self.browser.wait("both answers", "return window.answered === 2")
        self.wait_order("bca")

    def test_removing_many(self):
        self.service.add(*[f"{FILES}/small/{number}.bin" for number in range(5)], startsPaused=True)
        self.browser.wait("five", "return document.querySelectorAll('.row').length === 5")
        self.browser.run("document.querySelector('.row').focus()")
        self.browser.press("Shift+ArrowDown", "Shift+ArrowDown", "Delete")
        self.assertIn("3", self.dialog())
        self.browser.press("Enter")
        self.browser.wait("two", "return document.querySelectorAll('.row').length === 2")
        self.assertEqual([each["url"][-5] for each in self.service.downloads()], ["3", "4"])

    def test_names_are_text(self):
        name = "<img src=x onerror=alert(1)>\u202egpj.exe"
        self.service.add(f"{FILES}/small/hostile.bin", group=name, startsPaused=True, metadata={"<b>k</b>": name})
        row = self.row("hostile.bin")
        self.browser.click(f"{row} .name")
        self.browser.wait("the details", "return document.querySelector('.facts')?.innerText.includes('<b>k</b>')")
        self.assertEqual(self.browser.run("return document.querySelectorAll('img').length"), 0)
        shown = self.browser.run("""
            return import('./page/format.js').then(({ nameOf }) => nameOf({ name: 'evil\\u202egpj.exe' }))""")
        self.assertEqual(shown, "evil\ufffdgpj.exe")


class Page(PageTestCase):
    def test_languages_switch_and_stay(self):
        self.service.add(f"{FILES}/small/word.bin", startsPaused=True)
        self.service.add("http://127.0.0.1:1/waits.bin")
        row, waiting = self.row("word.bin"), self.row("waits.bin")
        self.wait_state(waiting, "waiting")
        self.browser.press("s")
        self.dialog()
        self.browser.run("const s = document.querySelector('[name=language]'); s.value = 'zh-Hans'; s.dispatchEvent(new Event('change'))")
        self.browser.wait("Chinese", "return document.querySelector('#add-button').innerText.includes('添加链接')")
        self.assertEqual(self.dialog(), "设置")
        self.browser.press("Escape")
        self.assertEqual(self.browser.texts(f"{row} .state"), ["已暂停"])
        self.browser.wait(
            "the reason, in Chinese", "return /^等待中 · (上次尝试失败|无法连接到服务器)/.test(document.querySelector(a0).innerText)",
            f"{waiting} .state")
        self.browser.reload()
        self.listed()
        self.assertEqual(self.browser.run("return document.documentElement.lang"), "zh-Hans")
        self.assertIn("添加链接", self.browser.texts("#add-button")[0])
        self.picture("chinese")

    def test_both_languages_say_everything(self):
        differences = self.browser.run("""
            return Promise.all(['English', 'Chinese'].map((name) => import(`./page/words${name}.js`))).then(([{english}, {chinese}]) =>
                Object.keys({ ...english, ...chinese }).filter((key) => {
                    const holes = (words) => [...new Set(JSON.stringify(words).match(/\\{\\w+\\}/g) ?? [])].sort().join();
                    return !(key in english && key in chinese) || holes(english[key]) !== holes(chinese[key]);
                }))""")
        # A plural in English has words for one without a number.
        self.assertEqual(differences, [])

    def test_light_and_dark(self):
        light = self.browser.run(BACKGROUND)
        self.browser.prefer(color_scheme="dark")
        dark = self.browser.run(BACKGROUND)
        self.assertNotEqual(light, dark, "the system's choice is taken")
        self.browser.press("s")
        self.dialog()
        self.browser.run("const s = document.querySelector('[name=theme]'); s.value = 'light'; s.dispatchEvent(new Event('change'))")
        self.assertEqual(self.browser.run(BACKGROUND), light)
        self.browser.reload()
        self.listed()
        self.assertTrue(self.browser.run(DARK))
        self.assertEqual(self.browser.run(BACKGROUND), light, "one's own choice outlasts a reload")

    def test_signing_in(self):
        self.expected_complaints = ("401",)
        self.browser.call("DELETE", "/cookie")
        self.browser.open("about:blank")
        self.browser.open(ADDRESS)
        self.assertEqual(self.dialog(), "Sign in")
        self.browser.type("wrong")
        self.browser.press("Enter")
        self.browser.wait("the refusal", "return document.querySelector('#token-say').textContent !== ''")
        self.browser.press("Escape")
        self.assertEqual(self.dialog(), "Sign in", "there is no way around it")
        self.browser.run("document.querySelector('#token').select()")
        self.browser.type(TOKEN)
        self.browser.press("Enter")
        self.no_dialog()
        self.listed()

    def test_the_token_leaves_the_address(self):
        entries = [each["url"] for each in self.browser.devtools("Page.getNavigationHistory")["entries"]]
        self.assertEqual([each for each in entries if "token" in each or "code" in each], [])
        self.assertEqual(self.browser.run("return location.href"), ADDRESS)
        self.assertEqual(self.browser.run("return document.cookie"), "", "no script can read the session")
        kept = self.browser.run("return JSON.stringify(localStorage) + JSON.stringify(sessionStorage)")
        self.assertNotIn(TOKEN, kept)

    def test_a_link_signs_in_once(self):
        self.expected_complaints = ("401",)
        code = self.service.call("POST", "session/codes")["code"]
        for title in (None, "Sign in"):
            self.browser.call("DELETE", "/cookie")
            self.browser.open("about:blank")
            self.browser.open(f"{ADDRESS}#code={code}")
            if title is None:
                self.listed()
            else:
                self.assertEqual(self.dialog(), title)
                self.browser.wait("the reason", "return document.querySelector('#toasts').innerText.includes('tow page')")
            self.assertEqual(self.browser.run("return location.href"), ADDRESS)

    def test_a_page_without_its_scripts_says_so(self):
        self.expected_complaints = ("ERR_BLOCKED_BY_CLIENT",)
        self.browser.devtools("Network.enable")
        self.browser.devtools("Network.setBlockedURLs", urls=["*/page/main.js*"])
        try:
            self.browser.open("about:blank")
            self.browser.open(ADDRESS)
            self.browser.wait("the note", "return document.querySelector('#unscripted').checkVisibility({ visibilityProperty: true })")
            self.assertIn("--host", self.browser.texts("#unscripted")[0])
        finally:
            self.browser.devtools("Network.setBlockedURLs", urls=[])

    def test_links_in_the_address_wait_for_a_word(self):
        self.visit(f"#add={FILES}/small/x.bin&add={FILES}/small/y.bin")
        self.assertEqual(self.dialog(), "Add links")
        self.assertEqual(self.service.downloads(), [])
        self.assertEqual(self.browser.run("return location.hash"), "")
        self.wait_to_add()
        self.browser.click("button[form=add-form]")
        self.no_dialog()
        self.row("y.bin")

    def test_a_key_for_another_page_adds_nothing(self):
        """Another page leads here while its user presses Enter, or clicks, again and again."""
        for press in [
            lambda: self.browser.press("Enter"), lambda: self.browser.press("Control+Enter"),
            lambda: self.browser.run("document.querySelector('button[form=add-form]').click()"),
        ]:
            self.visit(f"#add={FILES}/small/x.bin")
            self.assertEqual(self.dialog(), "Add links")
            press()
            self.assertEqual(self.dialog(), "Add links")
            self.assertEqual(self.service.downloads(), [])
        # The user comes back to the window: what was pressed until then was for another one.
        self.browser.run("setInterval(() => dispatchEvent(new Event('focus')), 300)")
        time.sleep(1.5)
        self.browser.press("Control+Enter")
        self.assertEqual(self.service.downloads(), [])

    def wait_to_add(self):
        self.browser.wait("to add", "return !document.querySelector('button[form=add-form]').disabled")

    def test_the_bookmarklet_leads_here(self):
        self.browser.press("s")
        self.dialog()
        code = self.browser.run("return decodeURIComponent(document.querySelector('.bookmarklet a').href)")
        opened = self.browser.run("""
            let opened;
            new Function('open', arguments[0].replace('javascript:', ''))((address) => (opened = address));
            return opened;
        """, code)
        self.assertEqual(opened, f"{ADDRESS}#add={ADDRESS.replace(':', '%3A').replace('/', '%2F')}")

    def test_a_page_that_was_left_holds_no_connection(self):
        # A browser gives one host six of them, and keeps pages for the way back.
        for _ in range(7):
            self.visit("")
        self.browser.call("POST", "/back")
        self.browser.call("POST", "/back")
        self.listed()
        self.service.add(f"{FILES}/small/back.bin", startsPaused=True)
        self.row("back.bin")

    def test_a_silent_stream_is_said_and_opened_again(self):
        """The way to the service can fail without an error. The clock of the page is put forward, and nothing arrives."""
        self.service.add(f"{FILES}/small/there.bin", startsPaused=True)
        self.row("there.bin")
        # Each look at the clock is later than a silent stream may last, and the service cannot be reached.
        self.browser.run("""
            window.real = { now: Date.now, fetch: window.fetch, skew: 0 };
            window.fetch = () => Promise.reject(new TypeError('no way'));
            Date.now = () => window.real.now() + (window.real.skew += 26000);""")
        self.browser.wait("the banner", "return !document.querySelector('#banner').hidden")
        self.assertTrue(self.browser.run("return document.body.classList.contains('unheard')"))
        self.browser.run("Date.now = window.real.now; window.fetch = window.real.fetch;")
        self.browser.wait("the stream", "return document.querySelector('#banner').hidden")
        self.service.add(f"{FILES}/small/heard.bin", startsPaused=True)
        self.row("heard.bin")

    def test_a_lost_service_is_said_and_found_again(self):
        self.expected_complaints = ("ERR_BLOCKED_BY_CLIENT",)
        self.service.add(f"{FILES}/small/there.bin", startsPaused=True)
        self.browser.devtools("Network.enable")
        self.browser.devtools("Network.setBlockedURLs", urls=["*/api/v1/events*"])
        try:
            # The devtools of a tab block no request of a worker.
            with self.without_shared_workers():
                self.visit("")
            self.browser.wait("the banner", "return !document.querySelector('#banner').hidden")
            self.row("there.bin")
        finally:
            self.browser.devtools("Network.setBlockedURLs", urls=[])
        self.browser.wait("the stream", "return document.querySelector('#banner').hidden")
        self.service.add(f"{FILES}/small/heard.bin", startsPaused=True)
        self.row("heard.bin")


if __name__ == "__main__":
    unittest.main()
