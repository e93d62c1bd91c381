"""Debian's chromium, driven over the WebDriver protocol by nothing but the standard library."""

import base64
import http.client
import json
import re
import shutil
import subprocess
import tempfile
import time

# Keys as WebDriver names them.
KEYS = {
    "Escape": "\ue00c", "Enter": "\ue007", "Tab": "\ue004", "Space": " ", "Delete": "\ue017", "Shift": "\ue008",
    "Control": "\ue009", "Alt": "\ue00a", "ArrowUp": "\ue013", "ArrowDown": "\ue015", "ArrowLeft": "\ue012",
    "ArrowRight": "\ue014", "Home": "\ue011", "End": "\ue010", "PageUp": "\ue00e", "PageDown": "\ue00f",
}
# Seconds. A wait ends with what it waits for; this is for what never comes, on a machine that others keep busy.
PATIENCE = 180
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class BrowserError(Exception):
    """What the driver answered instead of doing what was asked."""


class Browser:
    """One browser with one window. `close` ends both it and its driver."""

    def __init__(self, width=1280, height=860, preferences=None):
        for program in ("chromedriver", "chromium"):
            if shutil.which(program) is None:
                raise BrowserError(f"{program} is not installed: scripts/setup-tests does that")
        self.profile = tempfile.TemporaryDirectory(prefix="towline-page-", ignore_cleanup_errors=True)
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.session = None
        try:
            self.port = self._port()
            self._begin(width, height, preferences or {})
        except BaseException:
            self.close()
            raise

    def _port(self):
        for line in self.driver.stdout:
            if match := re.search(r"successfully on port (\d+)", line):
                return int(match.group(1))
        raise BrowserError("chromedriver ended before it listened")

    def _begin(self, width, height, preferences):
        options = {
            "binary": shutil.which("chromium"), "prefs": preferences,
            "args": [
                "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--lang=en-US",
                f"--user-data-dir={self.profile.name}", f"--window-size={width},{height}", "--hide-scrollbars",
                # A page under this name is not a secure context, as that of a server in a local network.
                "--host-resolver-rules=MAP nas.test 127.0.0.1",
            ],
        }
        capabilities = {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"},
        }
        answer = self._call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = f"/session/{answer['sessionId']}"
        self.call("POST", "/timeouts", {"script": 1000 * PATIENCE + 60_000, "pageLoad": 1000 * PATIENCE})
        self.size(width, height)

    def _call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE + 120)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise BrowserError(f"{value['error']}: {value['message'].splitlines()[0] if value['message'] else ''}")
        return value

    def call(self, method, path, body=None):
        """A command of this session."""
        return self._call(method, self.session + path, {} if method == "POST" and body is None else body)

    def close(self):
        """Ends the browser, then its driver."""
        try:
            if self.session:
                self.call("DELETE", "")
        except (OSError, BrowserError):
            pass
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.profile.cleanup()

    # What a user does

    def open(self, address):
        """Goes there and waits until it has loaded."""
        self.call("POST", "/url", {"url": address})

    def tab(self):
        """The current tab."""
        return self.call("GET", "/window")

    def open_tab(self):
        """Opens another tab and goes there."""
        handle = self.call("POST", "/window/new", {"type": "tab"})["handle"]
        self.switch(handle)
        return handle

    def switch(self, handle):
        """Goes to a tab."""
        self.call("POST", "/window", {"handle": handle})

    def close_tab(self, handle, then):
        """Closes a tab and goes to another one."""
        self.switch(handle)
        self.call("DELETE", "/window")
        self.switch(then)

    def reload(self):
        """Loads the page again."""
        self.call("POST", "/refresh")

    def click(self, selector):
        """Presses the first element that fits, where it is seen."""
        element = self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self.call("POST", f"/element/{element}/click")

    def press(self, *names):
        """Presses keys one after another; `Shift+ArrowDown` holds the first ones."""
        for name in names:
            held = name.split("+") if len(name) > 1 else [name]
            keys = [KEYS.get(key, key) for key in held]
            actions = [{"type": "keyDown", "value": key} for key in keys]
            actions += [{"type": "keyUp", "value": key} for key in reversed(keys)]
            self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def type(self, text):
        """Types a text where the focus is."""
        actions = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def drop(self, items, x=640, y=500, held=lambda: None):
        """Drags `items`, texts by media type, in from outside the page and drops them, after `held` has been called."""
        data = {
            "items": [{"mimeType": kind, "data": text} for kind, text in items.items()], "dragOperationsMask": 1,
        }
        for step in ("dragEnter", "dragOver", "drop"):
            if step == "drop":
                held()
            self.devtools("Input.dispatchDragEvent", type=step, x=x, y=y, data=data)

    def size(self, width, height):
        """Makes the window that large, in CSS pixels; also smaller than a desktop would let it."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, **features):
        """What the system prefers: `color_scheme="dark"`, `reduced_motion="reduce"`."""
        values = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()]
        self.devtools("Emulation.setEmulatedMedia", features=values)

    def devtools(self, command, **parameters):
        """A command of the browser's own protocol."""
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    # What a test sees

    def run(self, script, *arguments):
        """Runs a function's body in the page; a promise is waited for."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, what, script, *arguments):
        """Waits until the script gives something true, and gives it."""
        waiting = """
            const [body, values, limit] = arguments;
            const look = new Function(...values.map((_, index) => `a${index}`), body);
            const end = performance.now() + limit;
            for (;;) {
                const found = look(...values);
                if (found || performance.now() > end) return found;
                await new Promise((resolve) => setTimeout(resolve, 25));
            }
        """
        found = self.run(f"return (async function () {{ {waiting} }})(...arguments)", script, arguments, PATIENCE * 1000)
        if not found:
            raise AssertionError(f"waited {PATIENCE} s for {what}; the page says: {self.texts('body')[0][:600]!r}")
        return found

    def texts(self, selector):
        """The texts of all elements that fit."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", selector)

    def picture(self, path):
        """Writes a picture of the window."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def complaints(self):
        """What the console said since it was last asked, warnings and errors."""
        return [
            entry["message"] for entry in self.call("POST", "/se/log", {"type": "browser"})
            if entry["level"] in ("WARNING", "SEVERE")
        ]


def settled(read, seconds):
    """The value `read` gives when it has not changed for so long."""
    value, since = read(), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.1)
        if (current := read()) != value:
            value, since = current, time.monotonic()
    return value
