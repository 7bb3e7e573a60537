"""Debian's Chromium, headless, driven over its DevTools protocol: for tests and screenshots.

    with Chromium() as browser:
        browser.open("http://127.0.0.1:8080")
        browser.wait_for("document.querySelector('#rbda-status')")
        browser.screenshot(Path("page.webp"))

Nothing but this machine is reachable from it; `requests` has every address that was asked for.
"""

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

PATIENCE = 80.0  # [s]; software WebGL on a loaded machine takes its time
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-quic",
    "--disable-sync",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--remote-debugging-port=0",
)


def find():
    """Path of the browser; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """One browser with one page, in a process of its own.

    Args:
        size: width and height of the window [pixels].
        command: what to put before the browser, such as taskset.
    """

    def __init__(self, size=(1280, 800), command=()):
        from websockets.sync.client import connect

        self.requests = []
        self.messages = []
        self._count = 0
        self._folder = tempfile.TemporaryDirectory(prefix="chromium_", ignore_cleanup_errors=True)
        window = f"--window-size={size[0]},{size[1]}"
        self._process = subprocess.Popen(
            [
                *command,
                find(),
                *FLAGS,
                window,
                f"--user-data-dir={self._folder.name}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            self._socket = connect(self._address(), max_size=None, compression=None)
            for domain in ("Page", "Runtime", "Network"):
                self.call(f"{domain}.enable")
            metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
            self.call("Emulation.setDeviceMetricsOverride", **metrics)
        except BaseException:
            self._end()
            raise

    def _address(self):
        """WebSocket of the page."""
        port_file = Path(self._folder.name) / "DevToolsActivePort"
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise RuntimeError(f"chromium ended with {self._process.returncode}")
            if port_file.is_file() and port_file.read_text().count("\n"):
                port = port_file.read_text().splitlines()[0]
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=5) as answer:
                    pages = [each for each in json.load(answer) if each["type"] == "page"]
                if pages:
                    return pages[0]["webSocketDebuggerUrl"]
            time.sleep(0.05)
        raise TimeoutError("chromium did not open its debugging port")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._end()

    def _end(self):
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def call(self, method, **parameters):
        """Call a method of the protocol; its result."""
        self.send(method, **parameters)
        return self.answer()

    def send(self, method, **parameters):
        """Begin a call; `answer` waits for it."""
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))

    def answer(self):
        """The result of the last call."""
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE))
            if message.get("id") == self._count:
                if "error" in message:
                    raise RuntimeError(message["error"]["message"])
                return message["result"]
            self._note(message)

    def _note(self, message):
        parameters = message.get("params", {})
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif message.get("method") == "Network.webSocketCreated":
            self.requests.append(parameters["url"])
        elif message.get("method") == "Runtime.exceptionThrown":
            self.messages.append(json.dumps(parameters["exceptionDetails"])[:500])

    def open(self, url):
        """Go to a page."""
        self.call("Page.navigate", url=url)

    def evaluate(self, script):
        """The value of a JavaScript expression."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def wait_for(self, script, seconds=PATIENCE):
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(f"!!({script})"):
            if time.monotonic() > end:
                raise TimeoutError(f"waited in vain for {script}; {self.messages}")
            time.sleep(0.05)

    def text(self, selector):
        """Text of an element."""
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.textContent")

    def box(self, element):
        """Left, top, width, height of an element (an expression), once it has come to rest."""
        script = f"(e => {{ const b = {element}.getBoundingClientRect();"
        script += " return [b.left, b.top, b.width, b.height]; })()"
        last, now = None, self.evaluate(script)
        while last != now:
            time.sleep(0.3)
            last, now = now, self.evaluate(script)
        return now

    def press(self, element, share, until):
        """Hold the left button down on an element, at a share of its width, until told to stop."""
        end = time.monotonic() + PATIENCE
        while not self.evaluate(f"!!({until})") and time.monotonic() < end:
            left, top, width, height = self.box(element)
            at = {"y": top + height / 2, "button": "left", "clickCount": 1}
            for kind, x in (("mousePressed", 0), ("mouseMoved", 1), ("mouseMoved", 0)):
                x += left + share * width
                self.call("Input.dispatchMouseEvent", type=kind, buttons=1, x=x, **at)
                time.sleep(0.2)
            self.call("Input.dispatchMouseEvent", type="mouseReleased", x=x, **at)
            seen = time.monotonic() + 10.0  # software WebGL lets the page lag behind
            while not self.evaluate(f"!!({until})") and time.monotonic() < seen:
                time.sleep(0.1)

    def screenshot(self, path, quality=80, clip=None):
        """Write a picture: .png, .jpeg or .webp; of a part (x, y, width, height) if told."""
        form = path.suffix.removeprefix(".")
        parameters = {"format": form} if form == "png" else {"format": form, "quality": quality}
        if clip:
            x, y, width, height = clip
            parameters["clip"] = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        picture = self.call("Page.captureScreenshot", **parameters)
        path.write_bytes(base64.b64decode(picture["data"]))
