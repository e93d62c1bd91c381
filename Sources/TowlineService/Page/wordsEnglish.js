// The texts of the page in English. A text that depends on a number `n` is an object of plural forms.

export const english = {
  // The page around the list
  skipToList: "Skip to the list of downloads", search: "Search by name or URL", searchHint: "Search", summary: "Summary",
  add: "Add", addLinks: "Add links", addMany: "Add {n} downloads", settings: "Settings", helpTitle: "Keyboard shortcuts",
  filter: "Filter by state", order: "Sort by", group: "Filter by group", allGroups: "All groups", downloads: "Downloads",
  pauseAll: "Pause all", resumeAll: "Resume all", dropHere: "Drop links to add them", close: "Close",
  dismiss: "Cancel", save: "Save", saved: "Saved", set: "Apply", none: "none", unknown: "unknown",
  ascending: "Sorted ascending. Press to sort descending", descending: "Sorted descending. Press to sort ascending",
  connectionLost: "The connection to towd is lost. Reconnecting…", titleLost: "No connection",
  noAnswer: "towd does not respond. Check that towd is running, then try again.",

  // Filters, sort orders, totals
  "filter.all": "All", "filter.active": "Active", "filter.queued": "Waiting", "filter.paused": "Paused",
  "filter.finished": "Finished", "filter.failed": "Failed",
  "order.queue": "Queue position", "order.added": "Date added", "order.name": "Name", "order.size": "Size",
  "order.state": "State", "order.ended": "Date ended",
  "sum.active": { one: "{n} active", other: "{n} active" },
  "sum.waiting": { one: "{n} waiting", other: "{n} waiting" }, "sum.paused": { one: "{n} paused", other: "{n} paused" },
  "sum.failed": { one: "{n} failed", other: "{n} failed" },
  allDone: "All downloads finished", nothingYet: "No active downloads",

  // States
  "state.queued": "Queued", "state.connecting": "Connecting", "state.downloading": "Downloading",
  "state.verifying": "Verifying", "state.publishing": "Saving", "state.finished": "Finished",
  "state.follow-up-failed": "Downloaded",
  "state.paused": "Paused", "state.waiting": "Waiting", "state.failed": "Failed", "state.cancelled": "Cancelled",
  connectionCount: { one: "{n} connection", other: "{n} connections" },
  goesOnIn: "retrying in {time}", goesOnNow: "retrying now",
  followUpRunning: "running the follow-up action (such as unpacking)",
  followUpFailed: "the follow-up action (such as unpacking) failed",
  "limit.host": "limit: {n} per host", "limit.group": "limit: {n} in the group {group}",
  "limit.total": "limit: {n} at the same time",

  // Reasons for waiting, where the page does not show the reason that towd gives
  "waits.retry": "the most recent attempt to download failed", "waits.server": "the server asked to retry later",
  "waits.network": "the server cannot be reached",
  "waits.diskSpace": "not enough free disk space; the download resumes when there is enough",
  "waits.destination": "the destination directory cannot be written to; the download resumes when it can",

  // Short error texts; the details panel shows the full message of towd
  "error.unusableURL": "The URL is invalid or not supported; enter a new URL",
  "error.unusableDestination": "Cannot use this folder; check that the folder exists, and its permissions",
  "error.destinationExists": "A file with this name already exists; move or rename the file, then retry",
  "error.destinationBusy": "Another process is downloading to the same file; retry when that process has ended",
  "error.diskFull": "The disk is full; free disk space, then retry",
  "error.diskPermission": "No permission to write to this folder; change the permissions, then retry",
  "error.diskFailure": "The disk reported an error; check the disk, then retry",
  "error.unsupportedJournal": "A newer version of Towline started this download; update Towline to resume",
  "error.changedOnServer": "The file has changed on the server; retry to download the new version",
  "error.checksumMismatch": "The file does not match its checksum; check the checksum and the source",
  "error.refusedByServer": "The server refused the request; check the URL and the password",
  "error.notFound": "File not found on the server; check the URL",
  "error.redirectRefused": "The server redirects too often, or to an address that is not allowed; see the details of the download",
  "error.untrustedServer": "The server's certificate is not trusted; check the URL or contact the server's operator",
  "error.invalidResponse": "The server sent an invalid response; retry later",
  "error.transient": "All attempts failed; retry later",
  "error.lengthUnproven": "The server closed the connection, so the file may be incomplete; retry",
  "error.archiveRefused": "The archive is unsafe or not supported; it was not unpacked",
  "error.archiveDamaged": "The archive is damaged and was not unpacked; download it again",
  "problem.403": "Access denied", "problem.404": "Not found", "problem.429": "Too many requests",

  // Causes in the network, shown instead of the error
  "network.hostNotFound": "The host name was not found", "network.connectionFailed": "Cannot connect to the server",
  "network.connectionTimedOut": "Timed out while connecting to the server",
  "network.connectionLost": "The server closed the connection",
  "network.responseTimedOut": "The server did not respond in time",
  "network.malformedResponse": "The server sent an invalid response", "network.proxyFailed": "The proxy failed",
  "network.certificateRefused": "The server's certificate is not trusted",
  "network.clientCertificateRefused": "The server refused the client certificate",
  "network.tlsFailed": "Cannot open an encrypted connection to the server",

  // Folders that are gone
  folderLost: { one: "{n} download cannot use its folder:", other: "{n} downloads cannot use their folders in" },
  chooseFolder: "Choose another folder", newFolder: "New folder", useFolder: "Use this folder",
  folderText: {
    one: "If the folder has another path now, enter this path. The download then resumes there.",
    other: "If the folder has another path now, enter this path. All {n} downloads then resume there, in the same subfolders.",
  },
  folderChanged: { one: "Folder changed for {n} download", other: "Folder changed for {n} downloads" },

  // Figures
  of: "{held} of {length}", left: "{time} left", seconds: "{n} s", minutes: "{n} min", hours: "{n} h", days: "{n} d",
  longTime: "> 100 d", exact: "{size} ({n} bytes)", progressOf: "Progress of {name}",

  // Actions
  actions: "Actions", pause: "Pause", resume: "Resume", goOnNow: "Retry now", retry: "Retry", cancel: "Cancel",
  remove: "Remove", moreFor: "More actions for {name}", copyAddress: "Copy URL", copied: "URL copied",
  cannotCopy: "Cannot copy: the browser does not allow this page to use the clipboard. Copy the URL in the details",
  saveCopy: "Save a copy", "move.up": "Move up", "move.down": "Move down", "move.top": "Move to top",
  "move.bottom": "Move to bottom", movedTo: "{name} moved to position {n}",
  selection: "Actions for the selected downloads", clearSelection: "Clear selection",
  selectedCount: { one: "{n} selected", other: "{n} selected" },
  removeTitle: { one: "Remove {name}?", other: "Remove {n} downloads?" },
  removeText: {
    one: "The download is removed from the list. Its file stays on disk unless you select the option below.",
    other: "The downloads are removed from the list. Their files stay on disk unless you select the option below.",
  },
  removeFiles: { one: "Also delete the file", other: "Also delete the files" },
  removed: { one: "{n} download removed", other: "{n} downloads removed" },
  pauseTitle: { one: "Pause {name}?", other: "Pause {n} downloads?" },
  pauseText: "The server cannot continue this download: after a pause it starts from the beginning.",
  cancelTitle: { one: "Cancel {name}?", other: "Cancel {n} downloads?" },
  cancelText: "Cancelling deletes the data downloaded so far. To keep the data and resume later, use Pause instead.",
  cancelDo: { one: "Cancel download", other: "Cancel downloads" },
  keepDownload: { one: "Keep download", other: "Keep downloads" },
  saidFinished: { one: "{name} has finished", other: "{n} downloads have finished" },
  saidFailed: { one: "{name} has failed", other: "{n} downloads have failed" },

  // The empty list
  emptyTitle: "No downloads yet", emptyText: "Paste or drop links anywhere on this page, or press A to add links.",
  emptyNarrowed: "No matches", emptyNarrowedText: "No download matches the search and the filters.",
  showAll: "Show all downloads",

  // Details
  details: "Details", closeDetails: "Close details", segmentMap: "Segments", rateGraph: "Download rate",
  facts: "Information", timeline: "Timeline", change: "Options", timelineEmpty: "No events yet.", play: "Play",
  cannotPlay: "The browser cannot play this file. Save a copy and use another player.",
  rateWords: "Now {now}; maximum in the last 2 minutes: {highest}", rateNone: "No data received in the last 2 minutes",
  mapLabel: "{share} downloaded; byte ranges: {ranges}; active connections: {n}",
  legendThere: "Downloaded: {share}", legendMissing: "Remaining: {size}", connectionNumber: "Connection {n}",
  attemptAt: "at {position}, downloads up to {to}", thereShort: "{percent} downloaded",
  "fact.address": "URL", "fact.directory": "Folder", "fact.length": "Size", "fact.held": "Downloaded", 
  "fact.received": "Received since this download last started",
  "fact.connections": "Connections", "fact.group": "Group", "fact.added": "Added", "fact.ended": "Ended",
  "fact.followUp": "After the download", "fact.id": "ID",
  "followUp.running": "running", "followUp.done": "done", "followUp.failed": "failed",
  "control.priority": "Priority", "control.rateLimit": "Rate limit", "control.connections": "Connections",
  "control.group": "Group", "control.directory": "Folder (after you moved the files)", "control.renewedLink": "New URL", renew: "Use this URL",
  renewText: "If the URL has expired, enter a new URL of the same file. " +
    "The data downloaded so far is kept if the file is the same.",
  badRate: "Invalid rate. Enter a number with K, M or G, for example 10M.",
  badLink: "Invalid URL. Enter a URL that begins with http:// or https://.",

  // Adding
  links: "Links", linksHint: "Enter one or more links, or paste text that contains links.",
  linksFound: { one: "{n} link", other: "{n} links" },
  linesOdd: { one: "{n} line without a link is ignored", other: "{n} lines without a link are ignored" },
  notSupported: "not supported: {schemes}", takeHeaders: "Use the headers of the command: {names}",
  moreLines: { one: "{n} more line", other: "{n} more lines" },
  noLinks: "No download was added: the dropped content contains no http or https link.", options: "Options",
  added: { one: "{n} download added", other: "{n} downloads added" },
  badUser: "Invalid user name and password. Enter both with a colon between them, for example anna:secret",
  sendsUser: "The user name “{user}” and its password are sent to {hosts}.", sendsHeaders: "The headers {names} are sent to {hosts}.",
  andMore: { one: "{names} and {n} more host", other: "{names} and {n} more hosts" },
  badHeader: "Invalid header “{line}”. Enter each header as Name: value",
  "add.directory": "Save in folder", "add.name": "Name", "add.group": "Group", "add.priority": "Priority",
  "add.rateLimit": "Rate limit", "add.connections": "Connections", "add.checksum": "Checksum",
  "add.existing": "If the file exists", "add.user": "User name and password for the server", "add.headers": "Request headers, one per line",
  "add.startsPaused": "Add as paused", "add.unpack": "Unpack archives after the download",
  downloadsFolder: "downloads folder", fromServer: "from the server",
  example: "Example: {value}", defaultIs: "Default: {value}", automatic: "automatic",
  "existing.fail": "Report an error; if the server gives the name, add a number",
  "existing.rename": "Save under a numbered name",
  "existing.overwrite": "Overwrite the file", "existing.update": "Overwrite the file if it changed on the server",
  "existing.skip": "Keep the file and skip the download",

  // Settings
  noLimit: "No limit", limitedTo: "Limit: {rate}", limitNow: "Total rate limit: {limit}", limitTitle: "Total rate limit",
  limitField: "Rate limit for all downloads together",
  thisBrowser: "This browser", theService: "Service (towd)", theme: "Appearance", themeSystem: "System default",
  themeLight: "Light", themeDark: "Dark", singleKeys: "Single-key shortcuts (A, /, ? …)",
  "setting.maximumRunning": "Maximum active downloads",
  "setting.maximumRunningPerHost": "Maximum active downloads per host", "setting.rateLimit": "Total rate limit",
  groupLimits: "Maximum active downloads per group", groupName: "Group", newGroup: "Group name",
  groupLimit: "Maximum active downloads", noGroupLimit: "No limit",
  hosts: "Hosts", host: "Host", hostRunning: "Active downloads", hostCeiling: "Connection limit",
  hostNotBefore: "No requests before this time",
  bookmarklet: "Bookmarklet", bookmarkletName: "Add to Towline",
  bookmarkletDrag: "Drag this button to the bookmarks bar",
  bookmarkletText: "Drag this button to the bookmarks bar. " +
    "On any web page, it opens Towline with the selected links, or with the URL of the page if no link is selected.",

  // Signing in
  signInTitle: "Sign in", signIn: "Sign in", signOut: "Sign out", token: "Access token", 
  usedLink: "This link is not valid any more: it signs in once, within an hour. Run “tow page” for a new link.",
  wrongToken: "Wrong access token. Copy the token from the token file of towd.",
  signInText: "On the machine where towd runs, run “tow page”: the link that it prints signs this browser in. " +
    "Or enter the access token of towd.",
  tokenFile: "The token is in the file", tokenPlace: "The token is in the file “token” in the state directory of towd.",
  cookiesBlocked: "The browser blocked the cookie that keeps you signed in. Allow cookies for this site, then sign in again.",

  // Keys
  keyMove: "Move between downloads", keySelect: "Select several downloads", keySelectAll: "Select all downloads",
  keyOpen: "Open the details", keyToggle: "Pause, resume or retry", keyRemove: "Remove the download (asks first)",
  keyCancel: "Cancel the download", keyRetry: "Retry the download",
  keyReorder: "Move in the queue (Home: to the top, End: to the bottom)", keyMenu: "Open the menu of the download",
  keyTab: "Go to the buttons of the download", keyEscape: "Close the dialog or details, or clear the selection",
  keyAdd: "Add links", keyPaste: "Add links from the clipboard", keySearch: "Search",
  keyLimit: "Set the total rate limit", keySettings: "Open the settings", keyHelp: "Show this list of shortcuts",
};
