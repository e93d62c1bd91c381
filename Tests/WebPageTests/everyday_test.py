"""The page in everyday situations: a phone, a zoomed page, a page without TLS, folders that were moved."""

import os
import unittest
import urllib.parse

from browser import Browser
from support import ADDRESS, FILES, TOKEN, PageTestCase

LAN = ADDRESS.replace("127.0.0.1", "nas.test")
SEEN = """
    // A user cannot scroll these, although a script can.
    const style = (box) => getComputedStyle(box === document.documentElement ? document.body : box);
    const isFixed = (box) => box.scrollTop > 0 && style(box).overflowY === 'hidden';
    const seen = (each) => {
        each.scrollIntoView({ block: 'center' });
        for (let box = each; box; box = box.parentElement) if (isFixed(box)) return false;
        const { left, top, width, height } = each.getBoundingClientRect();
        return width > 0 && each.contains(document.elementFromPoint(left + width / 2, top + height / 2));
    };
"""


# The same without scrolling.
SEEN_NOW = SEEN.replace("each.scrollIntoView({ block: 'center' });", "")
# Shows a row for each reason that the page knows, for those of the service that are longest, and for other states, and
# gives their number and the texts that are cut.
CUT_TEXTS = """
    const load = (name) => import(`./page/${name}.js`);
    const modules = ['row', 'language', 'wordsEnglish'].map(load);
    return Promise.all(modules).then(([{ Row }, { setLanguage }, { english }]) => {
        const all = Object.keys(english);
        const keys = (kind) => all.filter((key) => key.startsWith(kind)).map((key) => key.slice(kind.length));
        const reasons = ['cannot resolve the host name of the server', 'the server asked to retry later'];
        const half = { heldBytes: 1e9, completeLength: 2e9 }, whole = { heldBytes: 2e9, completeLength: 2e9 };
        const downloads = [
            ...keys('network.').map((networkFailure) => ({ state: 'failed', error: { networkFailure } })),
            ...keys('error.').map((code) => ({ state: 'failed', error: { code, httpStatus: 404 }, ...half })),
            ...reasons.map((reason) => ({ state: 'waiting', reason, waitsUntil: Date.now() + 90_000, ...half })),
            { state: 'finished', followUp: { state: 'running' }, ...whole },
            { state: 'follow-up-failed', followUp: { state: 'failed' }, ...whole },
            { state: 'finished', endedAt: Date.now(), ...whole },
            { state: 'paused', ...half },
            { state: 'queued', reason: 'limit: 3 at the same time', ...half },
            { state: 'downloading', rate: 880_000, remaining: 5400, ...half },
        ];
        setLanguage(arguments[0]);
        const cut = downloads.flatMap((download, index) => {
            const row = new Row();
            row.show({ id: `${index}`, url: 'http://a.test/a.bin', heldBytes: 0, ...download }, {});
            document.querySelector('#rows').append(row.element);
            const parts = [row.element, ...row.element.querySelectorAll('.cell-line > *')];
            const texts = parts.filter((each) => each.offsetWidth)
                .filter((each) => each.scrollHeight > each.clientHeight || each.scrollWidth > each.clientWidth)
                .map((each) => `${each.className}: ${each.innerText}`);
            row.element.remove();
            return texts;
        });
        setLanguage('en');
        return [downloads.length, cut];
    });
"""


class SigningIn(PageTestCase):
    def sign_out(self):
        self.browser.call("DELETE", "/cookie")
        self.browser.open("about:blank")

    def test_the_dialog_names_the_token_file_and_tow_page(self):
        self.expected_complaints = ("401", "Cross-Origin-Opener-Policy")
        self.sign_out()
        self.browser.open(ADDRESS)
        self.assertEqual(self.dialog(), "Sign in")
        self.browser.wait("the path", "return document.querySelector('#token-place code')")
        path = self.browser.texts("#token-place code")[0]
        with open(path, encoding="ascii") as file:
            self.assertEqual(file.read().strip(), TOKEN)
        self.assertIn("tow page", self.browser.texts("dialog")[0])
        self.picture("sign-in")
        # A browser on another machine cannot read the file.
        self.visit(address=LAN)
        self.sign_out()
        self.browser.open(LAN)
        self.dialog()
        self.browser.wait("the answer", "return performance.getEntriesByType('resource').some(({ name, responseEnd }) => name.endsWith('session') && responseEnd)")
        self.assertNotIn(path, self.browser.texts("dialog")[0])

    def test_a_link_signs_in_a_page_that_asks_for_the_token(self):
        self.expected_complaints = ("401",)
        self.sign_out()
        self.browser.open(ADDRESS)
        self.dialog()
        # A link of the same page loads nothing.
        self.browser.run("location.hash = arguments[0]", self.sign_in_fragment())
        self.no_dialog()
        self.listed()

    def test_blocked_cookies_are_named(self):
        other = Browser(preferences={"profile.default_content_setting_values.cookies": 2})
        self.addCleanup(other.close)
        other.open(ADDRESS)
        other.wait("the dialog", "return document.querySelector('dialog[open] #token')")
        other.type(TOKEN)
        other.press("Enter")
        said = other.wait("the reason", "return document.querySelector('#token-say').textContent")
        self.assertIn("cookie", said)


class Phone(PageTestCase):
    def setUp(self):
        super().setUp()
        self.browser.size(390, 844)

    def test_back_closes_the_details(self):
        self.service.add(*[f"{FILES}/small/{name}.bin" for name in "ab"], startsPaused=True)
        shown = "return !document.querySelector('#details').hidden"
        closed = "return document.querySelector('#details').hidden"
        # The browser keeps 50 entries, and earlier tests made many.
        self.browser.devtools("Page.resetNavigationHistory")
        for close in (lambda: self.browser.call("POST", "/back"), lambda: self.browser.click(".details-close")):
            entries = self.browser.devtools("Page.getNavigationHistory")["currentIndex"]
            self.browser.click(f"{self.row('a.bin')} .name")
            self.browser.wait("the details", shown)
            close()
            self.browser.wait("the list", closed)
            self.browser.wait("the entry before", "return !history.state")
            self.assertEqual(self.browser.devtools("Page.getNavigationHistory")["currentIndex"], entries)
            self.row("b.bin")

    def test_a_running_row_shows_size_percentage_and_rate(self):
        self.service.add(f"{FILES}/slow/running.bin")
        row = self.row("running.bin")
        self.wait_held(row, 0)
        words = "return [...document.querySelectorAll(`${a0} .cell-line > *`)].filter((each) => each.offsetWidth).map((each) => each.innerText).join('|')"
        self.browser.wait("the figures", f"return /^[\\d.]+\\sMiB\\/s.*\\|\\d+\\s% of 1.0\\sGiB$/.test((() => {{ {words} }})())", row)
        self.picture("phone-running")

    def test_a_reason_uses_the_whole_line(self):
        self.service.add("http://127.0.0.1:1/waits.bin")
        row = self.row("waits.bin")
        self.wait_state(row, "waiting")
        line, state = self.browser.run("return ['.cell-line', '.state'].map((part) => document.querySelector(`${arguments[0]} ${part}`).clientWidth)", row)
        self.assertGreater(state, 0.95 * line)
        self.picture("phone-waiting")

    def test_a_long_reason_is_shown_in_full(self):
        self.service.add("http://127.0.0.1:1/a-waiting-download-with-a-long-name.bin")
        self.service.add(f"{FILES}/missing/failed.bin", maximumTries=1)
        waits, failed = self.row("a-waiting-download-with-a-long-name.bin"), self.row("failed.bin")
        self.wait_state(waits, "waiting")
        self.wait_state(failed, "failed")
        self.picture("phone-reasons")
        for row in (waits, failed):
            cut = "const state = document.querySelector(`${arguments[0]} .state`); return [state.innerText, state.scrollHeight - state.clientHeight, state.scrollWidth - state.clientWidth]"
            text, *rest = self.browser.run(cut, row)
            self.assertEqual(rest, [0, 0], text)
            self.assertFalse(self.browser.run("const row = document.querySelector(arguments[0]); return row.scrollHeight > row.clientHeight", row))

    def test_no_text_of_a_row_is_cut(self):
        for width in (390, 360, 320):
            self.browser.size(width, 700)
            for language in ("en", "zh-Hans"):
                with self.subTest(width=width, language=language):
                    count, cut = self.browser.run(CUT_TEXTS, language)
                    self.assertGreater(count, 30)
                    self.assertEqual(cut, [])

    def test_all_actions_of_a_selection_are_seen(self):
        self.service.add(*[f"{FILES}/small/{name}.bin" for name in "ab"], startsPaused=True)
        self.row("b.bin")
        self.browser.click(".row")
        self.browser.click(".details-close")
        self.browser.press("Control+a")
        outside = """
            const bar = document.querySelector('#selection'), buttons = [...bar.querySelectorAll('button')];
            return buttons.length === 6 && bar.clientWidth > 0 ? buttons.filter((each) => {
                const { left, right, top, bottom } = each.getBoundingClientRect(), box = bar.getBoundingClientRect();
                return left < 0 || right > innerWidth || top < box.top || bottom > box.bottom;
            }).map((each) => each.innerText) : ['no bar'];"""
        for width in (1280, 390, 320):
            self.browser.size(width, 844)
            with self.subTest(width=width):
                self.assertEqual(self.browser.run(outside), [])

    def test_the_last_row_can_be_scrolled_above_a_note(self):
        self.service.add(*[f"{FILES}/small/{number}.bin" for number in range(12)], startsPaused=True)
        self.row("11.bin")
        self.browser.run("return import('./page/announce.js').then(({ announce }) => announce('one', 'bad'))")
        self.browser.run("document.querySelector('#list').scrollTop = 100000")
        seen = f"{SEEN_NOW} return seen(document.querySelector(`${{a0}} .name`))"
        self.browser.wait("the last row", seen, self.row("11.bin"))

    def test_a_note_leaves_the_banner_free(self):
        self.service.add(f"{FILES}/small/a.bin", startsPaused=True)
        self.browser.click(f"{self.row('a.bin')} .name")
        self.browser.run("""
            document.querySelector('#banner').textContent = 'The connection to towd is lost. Reconnecting…';
            document.querySelector('#banner').hidden = false;
            return import('./page/announce.js').then(({ announce }) => announce('one', 'bad'))""")
        for width, height in ((390, 844), (320, 640), (320, 256)):
            self.browser.size(width, height)
            note, banner = self.browser.run("""
                return [document.querySelector('.toast').getBoundingClientRect().bottom,
                    document.querySelector('#banner').getBoundingClientRect().top]""")
            with self.subTest(size=(width, height)):
                self.assertLess(note, banner)

    def test_no_text_of_a_dialog_is_cut(self):
        # The settings list the hosts of running downloads.
        self.service.add(f"{FILES}/slow/a.bin")
        self.wait_held(self.row("a.bin"), 0)
        self.browser.size(320, 640)
        wide = """
            const measure = document.createElement('canvas').getContext('2d');
            const content = document.querySelector('dialog .dialog-content');
            const fields = [...content.querySelectorAll('input:placeholder-shown')].filter((each) => each.clientWidth);
            const cut = fields.filter((each) => {
                const style = getComputedStyle(each);
                measure.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
                const edges = Number.parseFloat(style.paddingLeft) + Number.parseFloat(style.paddingRight);
                return measure.measureText(each.placeholder).width > each.clientWidth - edges;
            });
            const isWide = content.scrollWidth > content.clientWidth;
            return [...cut.map((each) => each.placeholder), ...(isWide ? ['wide'] : [])];"""
        self.browser.run("document.querySelector('#settings-button').click()")
        self.browser.wait("the hosts", "return document.querySelector('dialog tbody tr')")
        self.assertEqual(self.browser.run(wide), [])
        self.browser.press("Escape")
        self.no_dialog()
        self.browser.run("document.querySelector('#add-button').click()")
        self.dialog()
        self.browser.run("document.querySelector('.options').open = true")
        self.browser.type(f"curl {FILES}/small/a.bin -H 'Referer: http://a.test/' -b 'id=1' -H 'User-Agent: Browser'")
        self.browser.wait("the offer", "return !document.querySelector('#offer').hidden")
        self.assertEqual(self.browser.run(wide), [])
        self.browser.click("dialog footer .quiet")

    def test_a_problem_of_a_long_form_is_seen(self):
        self.browser.click("#add-button")
        self.browser.type(f"{FILES}/small/a.bin")
        self.browser.wait("the link", "return !document.querySelector('dialog [type=submit]').disabled")
        self.browser.run("document.querySelector('.options').open = true")
        self.browser.click("[name=rateLimit]")
        self.browser.type("fast")
        self.browser.click("dialog .primary")
        self.browser.wait("the problem", f"{SEEN_NOW} return seen(document.querySelector('dialog [role=alert]'))")
        self.assertIn("Invalid rate", self.browser.texts("dialog [role=alert]")[0])
        self.browser.click("dialog footer .quiet")

    def test_filters_show_that_there_are_more(self):
        edges = "return [...document.querySelector('.filter-row').classList].filter((name) => name.startsWith('more')).join()"
        self.browser.wait("the edge", f"return (() => {{ {edges} }})() === 'more-after'")
        self.picture("phone-filters")
        self.browser.run("document.querySelector('#filters').scrollLeft = 1000")
        self.browser.wait("the other edge", f"return (() => {{ {edges} }})() === 'more-before'")
        self.browser.size(1280, 860)
        self.browser.wait("no edge", f"return (() => {{ {edges} }})() === ''")


class Everyday(PageTestCase):
    def test_copying_works_without_tls(self):
        self.expected_complaints = ("Cross-Origin-Opener-Policy",)
        self.visit(address=LAN)
        self.assertFalse(self.browser.run("return isSecureContext"))
        link = f"{FILES}/small/copied.bin"
        self.service.add(link, startsPaused=True)
        self.browser.click(f"{self.row('copied.bin')} [data-do=menu]")
        self.browser.click("[role=menuitem]:has(.icon-copy)")
        self.browser.wait("the note", "return document.querySelector('.toast')?.textContent === 'URL copied'")
        self.browser.press("/", "Control+v")
        self.assertEqual(self.browser.run("return document.querySelector('#search').value"), link)

    def test_joiners_stay_in_names(self):
        name = "می\u200cروم 👩\u200d💻.mp4"
        self.service.add(f"{FILES}/small/x.mp4", name=name, startsPaused=True)
        self.row(name)

    def test_a_zoomed_page_scrolls_as_a_whole(self):
        """400 % on a screen of 1280 by 1024, 300 %, and a phone held sideways."""
        self.service.add(f"{FILES}/small/seen.bin", startsPaused=True)
        row = self.row("seen.bin")
        for width, height in ((320, 256), (427, 240), (844, 390)):
            self.browser.size(width, height)
            seen = f"{SEEN} return seen(document.querySelector(a0)) && document.documentElement.scrollWidth <= innerWidth"
            self.browser.wait(f"the row at {width} by {height}", seen, row)

    def test_a_low_screen_reaches_every_part_of_menus_and_dialogs(self):
        self.service.add(f"{FILES}/small/seen.bin", startsPaused=True)
        row = self.row("seen.bin")
        hidden = SEEN + """
            const box = document.querySelector('dialog[open], [popover]:popover-open');
            const parts = [...box.querySelectorAll('button, a, input, select, textarea, summary')].filter((each) => each.checkVisibility() && !each.disabled);
            const outside = parts.filter((each) => !seen(each)).map((each) => each.outerHTML.slice(0, 80));
            return outside.concat(box.scrollWidth > box.clientWidth ? 'wide' : []);"""
        for width, height in ((320, 256), (640, 360)):
            self.browser.size(width, height)
            # The event `resize` closes menus.
            self.browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            for opening in (f"{row} [data-do=menu]", "#limit-button", "#add-button", "#settings-button"):
                self.browser.run("document.querySelector(arguments[0]).click()", opening)
                self.browser.wait("it to open", "return document.querySelector('dialog[open], [popover]:popover-open')")
                if opening == "#add-button":
                    self.browser.run("document.querySelector('.options').open = true")
                with self.subTest(size=(width, height), of=opening):
                    self.assertEqual(self.browser.run(hidden), [])
                self.browser.press("Escape")
                self.browser.wait("it to close", "return !document.querySelector('dialog[open], [popover]:popover-open')")

    def test_a_large_font_fits(self):
        self.service.add(f"{FILES}/small/seen.bin", f"{FILES}/small/other.bin", startsPaused=True)
        row = self.row("seen.bin")
        self.row("other.bin")
        for width, height in ((390, 844), (1280, 860)):
            self.browser.size(width, height)
            self.browser.run("document.documentElement.style.fontSize = '200%'")
            fits = f"{SEEN} return document.documentElement.scrollWidth <= innerWidth && seen(document.querySelector('#add-button')) && seen(document.querySelector(a0))"
            self.browser.wait(f"the page to fit at {width}", fits, row)
            apart = "return new Set([...document.querySelectorAll('.row')].map((each) => each.getBoundingClientRect().height)).size === 1 && document.querySelector('.row').offsetHeight === document.querySelector('.probe').offsetHeight"
            self.browser.wait("rows of the new height", apart)
            beside = """
                const tops = [...document.querySelectorAll('.row')].map((each) => each.getBoundingClientRect().top);
                return Math.abs(tops[1] - tops[0]) >= document.querySelector('.row').offsetHeight - 1;"""
            self.browser.wait("rows that do not overlap", beside)
            self.browser.run("document.documentElement.style.fontSize = ''")

    def test_letters_are_found_in_any_case(self):
        names = {"Straße.bin": ("STRASSE", "straße"), "ΟΔΟΣ.bin": ("οδος", "ΟΔΟΣ"), "İzmir.bin": ("izmir", "İZMİR")}
        for name, texts in names.items():
            id = self.service.add(f"{FILES}/small/{urllib.parse.quote(name)}", startsPaused=True)[0]["id"]
            self.row(name)
            for text in texts:
                with self.subTest(name, text=text):
                    found = self.service.call("GET", f"downloads?text={urllib.parse.quote(text)}")["downloads"]
                    self.assertEqual([each["id"] for each in found], [id])
                    script = "return import('./page/order.js').then(({ fits }) => fits(arguments[0], { states: [], group: '', text: arguments[1] }))"
                    self.assertTrue(self.browser.run(script, found[0] if found else {"url": f"{FILES}/{name}"}, text))

    def test_a_queued_download_names_the_limit(self):
        before = self.service.call("GET", "settings")["maximumRunningPerHost"]
        self.addCleanup(self.service.call, "PATCH", "settings", {"maximumRunningPerHost": before})
        self.service.call("PATCH", "settings", {"maximumRunningPerHost": 1})
        self.service.add(f"{FILES}/slow/first.bin", f"{FILES}/slow/second.bin")
        self.browser.wait("the limit", "return document.querySelector(`${a0} .state`)?.textContent === 'Queued · limit: 1 per host'", self.row("second.bin"))

    def test_the_limit_is_named_in_the_language_of_the_page(self):
        limits = ["limit: 3 per host", "limit: 1 in the group films (old)", "limit: 5 at the same time", "other"]
        texts = """
            const modules = ['row', 'language'].map((name) => import(`./page/${name}.js`));
            return Promise.all(modules).then(([{ stateText }, { setLanguage }]) =>
                ['en', 'zh-Hans', 'en'].map((language) => {
                    setLanguage(language);
                    return arguments[0].map((reason) => stateText({ state: 'queued', reason }));
                }))"""
        english, chinese, _ = self.browser.run(texts, limits)
        self.assertEqual(english, [f"Queued · {limit}" for limit in limits])
        self.assertEqual(chinese, [
            "排队中 · 每个主机最多 3 个", "排队中 · 分组“films (old)”最多 1 个", "排队中 · 最多同时下载 5 个", "排队中 · other"])

    def test_a_wait_is_never_of_no_time(self):
        text = self.browser.run("""
            const waiting = { state: 'waiting', waitsUntil: Date.now() + 300 };
            return import('./page/row.js').then(({ stateText }) => stateText(waiting))""")
        self.assertEqual(text, "Waiting · retrying in 1\u00a0s")

    def test_a_row_beside_the_details_shows_the_host(self):
        self.service.add("http://127.0.0.1:1/waits.bin")
        row = self.row("waits.bin")
        self.wait_state(row, "waiting")
        self.browser.click(f"{row} .name")
        self.browser.wait("the panel", "return document.querySelector('.details-state')?.textContent")
        width, text = self.browser.run("""
            const host = document.querySelector(`${arguments[0]} .host`);
            return [host.clientWidth, Number.parseFloat(getComputedStyle(host).fontSize)]""", row)
        self.assertGreater(width, 5 * text)

    def test_notes_leave_a_low_screen_free(self):
        announce = "return import('./page/announce.js').then(({ announce }) => announce(arguments[0], 'bad'))"
        for text in ("one", "two"):
            self.browser.run(announce, text)
        shown = """
            const notes = [...document.querySelectorAll('.toast')];
            return notes.filter((each) => each.checkVisibility()).map((each) => each.innerText)"""
        self.assertEqual(self.browser.run(shown), ["one", "two"])
        self.browser.size(320, 256)
        self.assertEqual(self.browser.run(shown), ["two"])

    def test_the_order_has_a_label(self):
        self.assertEqual(self.browser.run("return document.querySelector('#order').labels[0].innerText"), "Sort by")

    def test_placeholders_do_not_look_like_values(self):
        self.browser.press("a")
        self.dialog()
        self.browser.run("document.querySelector('.options').open = true")
        shown = self.browser.run("""
            return [...document.querySelectorAll('dialog :placeholder-shown')].map((each) =>
                [each.placeholder, getComputedStyle(each, '::placeholder').fontStyle]).filter(([text]) => text)""")
        self.assertGreater(len(shown), 5)
        for text, style in shown:
            self.assertRegex(text, "^(Example|Default): ")
            self.assertEqual(style, "italic")

    def test_a_pasted_list_is_not_red(self):
        self.browser.press("a")
        self.dialog()
        self.browser.run("""
            const field = document.querySelector('#links');
            field.value = arguments[0];
            field.dispatchEvent(new Event('input', { bubbles: true }));""", f"Films\n{FILES}/small/a.bin\nsee above")
        self.browser.wait("the lines", "return document.querySelectorAll('#links-list li').length === 3")
        red = self.browser.run("""
            const probe = document.body.appendChild(document.createElement('i'));
            probe.style.color = 'var(--bad)';
            const bad = getComputedStyle(probe).color;
            return [...document.querySelectorAll('dialog *')].filter((each) => each.innerText && getComputedStyle(each).color === bad).map((each) => each.innerText)""")
        self.assertEqual(red, [])

    def test_a_row_has_one_short_reason(self):
        self.service.add("http://127.0.0.1:1/waits.bin")
        self.service.add("http://127.0.0.1:1/failed.bin", maximumTries=1)
        waits, failed = self.row("waits.bin"), self.row("failed.bin")
        self.wait_state(waits, "waiting")
        self.wait_state(failed, "failed")
        texts = self.browser.texts(".row .cell-line")
        self.assertEqual(len(texts), 2)
        for text in texts:
            self.assertRegex(text.lower(), "cannot connect to the server")
            self.assertEqual(text.count("127.0.0.1"), 1)
            self.assertNotRegex(text, "Failed to connect|port 1 |[(]")
            self.assertLess(len(text), 80)
        message = "http://a.test/b: the disk is full (No space left on device). Free some space"
        brief = self.browser.run(f"return import('./page/row.js').then(({{ brief }}) => brief({message!r}))")
        self.assertEqual(brief, "the disk is full")

    def test_details_begin_with_the_reason_and_stay_closable(self):
        self.service.add("http://127.0.0.1:1/told.bin", maximumTries=1)
        row = self.row("told.bin")
        self.wait_state(row, "failed")
        self.browser.click(f"{row} .name")
        self.browser.wait("the panel", "return document.querySelector('.details-message')?.innerText.includes('127.0.0.1:1')")
        self.assertEqual(
            self.browser.run("return [...document.querySelector('#details').children].slice(0, 3).map((each) => each.className)"),
            ["", "details-state", "details-message"])
        self.assertEqual(self.browser.texts(".details-state"), ["Failed · Cannot connect to the server"])
        self.picture("details-failed")
        seen = """
            const panel = document.querySelector('#details'), button = panel.querySelector('.details-close');
            panel.scrollTop = 100000;
            const { left, top, width, height } = button.getBoundingClientRect();
            return panel.scrollTop > 0 && button.contains(document.elementFromPoint(left + width / 2, top + height / 2))"""
        self.assertTrue(self.browser.run(seen))

    def test_one_percentage_is_shown_everywhere(self):
        self.service.add(f"{FILES}/mapped/share.bin")
        row = self.row("share.bin")
        self.browser.click(f"{row} .name")
        self.browser.wait("connections", "return document.querySelector('.legend')?.innerText.includes('Connection')")
        self.browser.wait("percentages", """
            const row = document.querySelector(a0);
            const texts = [row?.querySelector('.percent')?.textContent, document.querySelector('.big')?.textContent,
                document.querySelector('.legend')?.textContent, document.querySelector('.map')?.getAttribute('aria-label')];
            return texts.every((text) => /\\d\\s%/.test(text)) && row.querySelector('.progress')?.hasAttribute('aria-valuenow');
            """, row)
        shares = self.browser.run("""
            const number = (text) => Number.parseInt(/(\\d+)\\s%/.exec(text)[1], 10), row = document.querySelector(arguments[0]);
            const read = () => [row.querySelector('.percent').textContent, document.querySelector('.big').textContent,
                document.querySelector('.legend').textContent, document.querySelector('.map').getAttribute('aria-label'),
                `${row.querySelector('.progress').getAttribute('aria-valuenow')} %`].map(number);
            const seen = [], end = performance.now() + 60000;
            return new Promise((resolve) => {
                const look = () => {
                    seen.push(read());
                    if (seen.at(-1)[0] >= 3 || performance.now() > end) resolve(seen); else requestAnimationFrame(look);
                };
                look();
            })""", row)
        self.assertGreaterEqual(shares[-1][0], 3)
        self.assertEqual([each for each in shares if len(set(each)) > 1], [])


class MovedFolders(PageTestCase):
    def test_all_downloads_of_a_folder_that_is_gone_get_a_new_one(self):
        root = self.service.call("GET", "settings")["downloadsDirectory"]
        added = [self.service.add(f"{FILES}/slow/{name}.bin", directory=f"old/{name}")[0]["id"] for name in "ab"]
        rows = [self.row(f"{name}.bin") for name in "ab"]
        for row in rows:
            self.wait_held(row, 0)
        self.service.call("POST", "actions/pause-all")
        for row in rows:
            self.wait_state(row, "paused")
        held = [self.service.call("GET", f"downloads/{id}")["heldBytes"] for id in added]
        os.rename(f"{root}/old", f"{root}/new")
        self.service.call("POST", "actions/resume-all")
        for row in rows:
            self.wait_state(row, "failed")
        self.browser.wait("the offer", "return document.querySelector('#lost').innerText.includes('2 downloads')")
        self.assertIn(f"{root}/old", self.browser.texts("#lost")[0])
        self.picture("folder-gone")
        self.browser.click("#lost button")
        self.dialog()
        self.browser.type(f"{root}/new")
        self.browser.press("Enter")
        self.no_dialog()
        for row in rows:
            self.wait_state(row, "connecting", "downloading")
        self.browser.wait("no offer", "return document.querySelector('#lost').hidden")
        for id, name, before in zip(added, "ab", held):
            now = self.service.call("GET", f"downloads/{id}")
            self.assertEqual(now["directory"], f"{root}/new/{name}")
            self.assertGreaterEqual(now["heldBytes"], before)

    def test_the_new_folder_replaces_the_common_part_of_the_paths(self):
        moved = self.browser.run("""
            return import('./page/folders.js').then(({ commonFolder, movedFolder }) => [
                commonFolder(['/a/b/c', '/a/b/d']), commonFolder(['/a/b']), commonFolder(['/a/bc', '/a/b']), commonFolder(['/x', '/y']),
                movedFolder('/a/b/c', '/a/b', '/n/'), movedFolder('/a/b', '/a/b', '/n'), movedFolder('/x', '/', '/n'), movedFolder('/a/b', '/a', '/')])""")
        self.assertEqual(moved, ["/a/b", "/a/b", "/a", "/", "/n/c", "/n", "/n/x", "/b"])


if __name__ == "__main__":
    unittest.main()
