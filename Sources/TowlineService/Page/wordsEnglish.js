// The page's words in English. An object holds plural forms by the number `n`.

export const english = {
  // The frame
  skipToList: "Skip to the list", search: "Search names and addresses", searchHint: "Search", summary: "Summary",
  add: "Add", addLinks: "Add links", addMany: "Add {n}", settings: "Settings", helpTitle: "Keyboard shortcuts",
  filter: "Filter", order: "Order by", group: "Group", allGroups: "All groups", downloads: "Downloads",
  pauseAll: "Pause all", resumeAll: "Resume all", dropHere: "Drop links to add them", close: "Close",
  dismiss: "Cancel", save: "Save", saved: "Saved", set: "Set", none: "none", unknown: "not known yet",
  ascending: "Ascending; press to turn round", descending: "Descending; press to turn round",
  connectionLost: "The service does not answer. Trying again…", noAnswer: "The service does not answer.",

  // Filters, orders, sums
  "filter.all": "All", "filter.active": "Running", "filter.queued": "Waiting", "filter.paused": "Paused",
  "filter.finished": "Finished", "filter.failed": "Failed",
  "order.queue": "Queue", "order.added": "Added", "order.name": "Name", "order.size": "Size", "order.state": "State",
  "order.ended": "Ended",
  "sum.active": { one: "{n} running", other: "{n} running" },
  "sum.waiting": { one: "{n} waiting", other: "{n} waiting" }, "sum.paused": { one: "{n} paused", other: "{n} paused" },
  "sum.failed": { one: "{n} failed", other: "{n} failed" }, allDone: "All done", nothingYet: "Nothing to do",

  // States
  "state.queued": "Queued", "state.connecting": "Connecting", "state.downloading": "Downloading",
  "state.verifying": "Verifying the checksum", "state.publishing": "Making it durable", "state.finished": "Finished",
  "state.paused": "Paused", "state.waiting": "Waiting", "state.failed": "Failed", "state.cancelled": "Cancelled",
  connectionCount: { one: "{n} connection", other: "{n} connections" },
  goesOnIn: "goes on in {time}", goesOnNow: "goes on now", followUpRunning: "unpacking or moving",
  followUpFailed: "what follows has failed",

  // What it waits for, where the service's own sentence is not shown
  "waits.retry": "for the next try", "waits.server": "the server says to come back later",
  "waits.network": "the server cannot be reached", "waits.diskSpace": "for room on the disk",

  // What went wrong, in short; the service's own sentence is in the details
  "error.unusableURL": "The address cannot be used", "error.unusableDestination": "It cannot be put there",
  "error.destinationExists": "There is a file of that name already", "error.destinationBusy": "Another process has it",
  "error.diskFull": "The disk is full", "error.diskPermission": "No permission to write", "error.diskFailure": "The disk failed",
  "error.unsupportedJournal": "Begun by a newer version", "error.changedOnServer": "The file has changed on the server",
  "error.checksumMismatch": "The checksum does not match", "error.refusedByServer": "The server refuses it",
  "error.notFound": "The server does not have it", "error.redirectRefused": "A redirect was not followed",
  "error.untrustedServer": "The server is not trusted", "error.invalidResponse": "The server's answer makes no sense",
  "error.transient": "Every attempt failed; retry goes on", "error.lengthUnproven": "Nobody can tell whether it is whole",
  "error.archiveRefused": "The archive was not unpacked", "error.archiveDamaged": "The archive is damaged",
  "problem.403": "Not allowed", "problem.404": "It is not there any more", "problem.429": "Too many requests",

  // Figures
  of: "{held} of {length}", left: "{time} left", seconds: "{n} s", minutes: "{n} min", hours: "{n} h", days: "{n} d",
  longTime: "a long time", exact: "{size} ({n} bytes)", progressOf: "Progress of {name}",

  // Actions
  actions: "Actions", pause: "Pause", resume: "Resume", goOnNow: "Go on now", retry: "Retry", cancel: "Cancel", remove: "Remove",
  moreFor: "More for {name}", copyAddress: "Copy address", copied: "Address copied", cannotCopy: "This browser does not let the page copy",
  saveCopy: "Save a copy", "move.up": "Move up", "move.down": "Move down", "move.top": "Move to the front", "move.bottom": "Move to the end",
  movedTo: "{name} is now number {n}", selection: "Selection", clearSelection: "Clear",
  selectedCount: { one: "{n} selected", other: "{n} selected" },
  removeTitle: { one: "Remove {name}?", other: "Remove {n} downloads?" },
  removeText: {
    one: "It goes off the list. What is on the disk stays, unless you say otherwise.",
    other: "They go off the list. What is on the disk stays, unless you say otherwise.",
  },
  removeFiles: { one: "Delete the file, too", other: "Delete the files, too" },
  removed: { one: "{n} removed", other: "{n} removed" },
  cancelTitle: { one: "Cancel {name}?", other: "Cancel {n} downloads?" },
  cancelText: "What was fetched so far is deleted. To keep it and go on later, pause instead.",
  cancelDo: { one: "Cancel the download", other: "Cancel the downloads" },
  keepDownload: { one: "Keep it", other: "Keep them" },
  saidFinished: { one: "{name} has finished", other: "{n} downloads have finished" },
  saidFailed: { one: "{name} has failed", other: "{n} downloads have failed" },

  // The empty list
  emptyTitle: "No downloads yet", emptyText: "Paste a link anywhere on this page, drop some, or press A.",
  emptyNarrowed: "Nothing matches", emptyNarrowedText: "No download fits the search and the filter.", showAll: "Show all",

  // Details
  details: "Details", closeDetails: "Close the details", segmentMap: "Segments", rateGraph: "Rate", facts: "Facts", timeline: "Timeline",
  change: "Change", timelineEmpty: "Nothing has happened yet.", play: "Play", cannotPlay: "The browser cannot play this file.",
  rateWords: "{now} now, {highest} at most in the last two minutes", rateNone: "No bytes in the last two minutes",
  mapLabel: "{share} is there, in {ranges} ranges; {n} connections at work",
  legendThere: "There: {share}", legendMissing: "Missing: {size}", connectionNumber: "Connection {n}", attemptAt: "at {position}, up to {to}",
  thereShort: "{percent} there",
  "fact.address": "Address", "fact.directory": "Folder", "fact.error": "Error", "fact.message": "Message", "fact.reason": "Reason",
  "fact.length": "Complete length", "fact.held": "Held", "fact.received": "Received in this run", "fact.connections": "Connections",
  "fact.group": "Group", "fact.added": "Added", "fact.ended": "Ended", "fact.followUp": "Afterwards", "fact.id": "Identifier",
  "followUp.running": "under way", "followUp.done": "done", "followUp.failed": "failed",
  "control.priority": "Priority", "control.rateLimit": "Rate limit", "control.connections": "Connections",
  "control.group": "Group", "control.renewedLink": "Renewed link", unchanged: "as it is", renew: "Use this link",
  renewText: "When a link has expired: another one to the same file. The bytes are kept if it proves to be the same.",
  badRate: "A rate is a number with K, M or G, such as 10M.", badLink: "That is no http or https address.",

  // Adding
  links: "Links", linksHint: "One or many, in any text: the links are picked out.",
  linksFound: { one: "{n} link", other: "{n} links" }, linesOdd: { one: "{n} line without a link", other: "{n} lines without a link" },
  noLinks: "There is no http or https link in what was dropped.", options: "Options",
  added: { one: "{n} download added", other: "{n} downloads added" }, badHeader: "“{line}” is no header: Name: value",
  "add.directory": "Folder", "add.name": "Name", "add.group": "Group", "add.priority": "Priority", "add.rateLimit": "Rate limit",
  "add.connections": "Connections", "add.checksum": "Checksum", "add.existing": "If the file exists", "add.user": "User and password",
  "add.headers": "Headers, one a line", "add.startsPaused": "Begin paused", "add.unpack": "Unpack archives when finished",
  downloadsFolder: "the downloads folder", fromServer: "as the server names it", userHint: "user:password",
  "existing.fail": "stop; a name from the server gets a number", "existing.rename": "take another name", "existing.overwrite": "replace it", "existing.skip": "leave it, call it done",

  // Settings
  noLimit: "No limit", limitedTo: "Limit {rate}", limitNow: "Rate limit for all: {limit}", limitTitle: "Rate limit for all", limitField: "Limit for all downloads together",
  thisBrowser: "This browser", theService: "The service", theme: "Appearance", themeSystem: "As the system", themeLight: "Light", themeDark: "Dark",
  singleKeys: "Single-key shortcuts (A, /, ? …)",
  "setting.maximumRunning": "Downloads at once", "setting.maximumRunningPerHost": "At once from each host", "setting.rateLimit": "Rate limit for all",
  groupLimits: "At once in a group", groupName: "Group", groupLimit: "At once",
  hosts: "Hosts", host: "Host", hostRunning: "Running", hostCeiling: "Connections at most", hostNotBefore: "Not before",
  bookmarklet: "Bookmarklet", bookmarkletName: "Add to Towline", bookmarkletDrag: "Drag it to the bookmarks bar",
  bookmarkletText: "Drag this to the bookmarks bar. On any page it offers the marked links, or the page itself, for adding.",

  // Signing in
  signInTitle: "Sign in", signIn: "Sign in", token: "Token", wrongToken: "That is not the token.",
  signInText: "This page needs the service's token. It is in the file ~/.local/state/towline/token of the user who runs towd.",

  // Keys
  keyMove: "Move between downloads", keySelect: "Select several", keySelectAll: "Select all", keyOpen: "Open the details",
  keyToggle: "Pause, resume or retry", keyRemove: "Remove, after a question", keyCancel: "Cancel", keyRetry: "Retry",
  keyReorder: "Move in the queue (Home, End: to its ends)", keyMenu: "Menu of the download", keyTab: "Go to its buttons", keyEscape: "Close, or clear the selection",
  keyAdd: "Add links", keyPaste: "Add what is on the clipboard", keySearch: "Search", keyLimit: "Rate limit", keySettings: "Settings", keyHelp: "This list",
};
