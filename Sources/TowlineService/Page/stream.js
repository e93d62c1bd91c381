// A shared worker: one event stream for all tabs of a browser, because browsers allow six connections per host. A shared
// worker does not depend on any tab, and unlike the Web Locks API it works without TLS. `SharedStream` in live.js is the
// other end of each port.

const names = ["alive", "changed", "added", "removed", "noted", "notice", "totals", "reset"];
/** A stream without any event for this time is replaced as soon as a tab asks for a new one. */
const silentAfter = 20_000;

const ports = new Set();
let source;
let lastSign = 0;
let hasSpoken = false;

function tell(message, receivers = ports) {
  for (const port of receivers) port.postMessage(message);
}

function open() {
  source?.close();
  const own = (source = new EventSource("../api/v1/events"));
  lastSign = Date.now();
  hasSpoken = false;
  // A browser that reconnects sends the number of the last event, and misses none. A new stream may have missed some.
  let fresh = true;
  own.addEventListener("open", () => {
    lastSign = Date.now();
    tell({ name: "open", fresh });
    fresh = false;
  });
  own.addEventListener("error", () => tell({ name: "error", state: own.readyState }));
  for (const name of names) {
    own.addEventListener(name, ({ data }) => {
      lastSign = Date.now();
      hasSpoken = true;
      tell({ name, data });
    });
  }
}

function join(port) {
  ports.add(port);
  const isDead = !source || source.readyState === EventSource.CLOSED || Date.now() - lastSign > silentAfter;
  if (isDead) open();
  else if (source.readyState === EventSource.OPEN) {
    tell({ name: "open", fresh: true }, [port]);
    if (hasSpoken) tell({ name: "alive" }, [port]);
  }
}

function leave(port) {
  port.close();
  ports.delete(port);
  if (ports.size > 0) return;
  source?.close();
  source = undefined;
}

addEventListener("connect", ({ ports: [port] }) => {
  // The only message of a tab: it leaves.
  port.onmessage = () => leave(port);
  join(port);
});
