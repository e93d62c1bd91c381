"""Ten thousand downloads in the list. Runs last: nobody has to take them off it again."""

import unittest

from support import FILES, PageTestCase

SCROLL = """
    const list = document.querySelector('#list');
    list.scrollTop = 0;
    let most = 0;
    return new Promise((resolve) => {
        let left = arguments[0];
        const step = () => {
            most = Math.max(most, document.querySelectorAll('.row').length);
            list.scrollTop += 300; // A brisk turn of the wheel: 18,000 pixels a second.
            left -= 1;
            if (left > 0) requestAnimationFrame(step); else resolve(most);
        };
        step();
    });
"""


class TenThousand(PageTestCase):
    def work(self):
        """Seconds of processor that the page's thread has used: what else the machine does is not in it."""
        metrics = self.browser.devtools("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    def scroll(self, frames):
        """Scrolls for so many frames. Gives seconds of processor for each, and the most rows that were in the document."""
        before = self.work()
        rows = self.browser.run(SCROLL, frames)
        return (self.work() - before) / frames, rows

    def lengthen(self, start, end):
        """Adds downloads, and waits until all of the list has been read."""
        self.browser.open("about:blank")
        self.service.add(*[f"{FILES}/small/{number:05}.bin" for number in range(start, end)], startsPaused=True)
        self.visit()
        self.browser.wait("all rows", f"return document.querySelector('[role=grid]').getAttribute('aria-rowcount') === '{end}'")
        self.browser.wait(
            "all pages",
            f"return document.querySelector('.rows').offsetHeight >= {end} * document.querySelector('.row').offsetHeight")

    def test_a_long_list_is_smooth_and_small_in_the_document(self):
        self.browser.devtools("Performance.enable", timeDomain="threadTicks")
        count, frames = 10_000, 120
        self.lengthen(0, 1000)
        self.scroll(frames)
        short, _ = self.scroll(frames)
        self.lengthen(1000, count)
        self.scroll(frames)
        long, rows = self.scroll(frames)
        print(f"a frame: {short * 1000:.2f} ms with 1,000 in the list, {long * 1000:.2f} ms with {count}", flush=True)
        self.assertLess(rows, 60, "only what is visible is in the document")
        # How long a frame takes is the machine's affair; that it takes the same with ten times the rows is the page's.
        self.assertLess(long, 2.5 * short, "a frame costs more the more there are in the list")
        self.picture("ten-thousand")

        self.browser.run("document.querySelector('.row').focus()")
        self.browser.press("End")
        self.browser.wait("the last row", f"return document.activeElement.getAttribute('aria-rowindex') === '{count}'")
        self.assertEqual(self.browser.run("return document.activeElement.querySelector('.name').textContent"), f"{count - 1:05}.bin")
        self.browser.press("Home")
        self.browser.wait("the first row", "return document.activeElement.getAttribute('aria-rowindex') === '1'")

        self.browser.press("/")
        self.browser.type("09876")
        self.browser.wait("the one", "return document.querySelectorAll('.row').length === 1 && document.querySelector('.name').textContent === '09876.bin'")


if __name__ == "__main__":
    unittest.main()
