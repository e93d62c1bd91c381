// 页面的简体中文文字。

export const chinese = {
  // 列表周围的页面
  skipToList: "跳到下载列表", search: "按名称或地址搜索", searchHint: "搜索", summary: "概况",
  add: "添加", addLinks: "添加链接", addMany: "添加 {n} 个下载", settings: "设置", helpTitle: "键盘快捷键",
  filter: "按状态筛选", order: "排序方式", group: "按分组筛选", allGroups: "所有分组", downloads: "下载",
  pauseAll: "全部暂停", resumeAll: "全部继续", dropHere: "松开即可添加链接", close: "关闭",
  dismiss: "取消", save: "保存", saved: "已保存", set: "应用", none: "无", unknown: "未知",
  ascending: "当前为升序，按下改为降序", descending: "当前为降序，按下改为升序",
  connectionLost: "与 towd 的连接已断开，正在重新连接……", titleLost: "连接已断开",
  noAnswer: "towd 没有响应。请确认 towd 正在运行，然后重试。",

  // 筛选、排序、合计
  "filter.all": "全部", "filter.active": "进行中", "filter.queued": "等待中", "filter.paused": "已暂停",
  "filter.finished": "已完成", "filter.failed": "失败",
  "order.queue": "队列顺序", "order.added": "添加时间", "order.name": "名称", "order.size": "大小",
  "order.state": "状态", "order.ended": "结束时间",
  "sum.active": "{n} 个进行中", "sum.waiting": "{n} 个等待中", "sum.paused": "{n} 个已暂停",
  "sum.failed": "{n} 个失败",
  allDone: "全部下载已完成", nothingYet: "没有进行中的下载",

  // 状态
  "state.queued": "排队中", "state.connecting": "正在连接", "state.downloading": "正在下载",
  "state.verifying": "正在校验", "state.publishing": "正在保存", "state.finished": "已完成",
  "state.paused": "已暂停", "state.waiting": "等待中", "state.failed": "失败", "state.cancelled": "已取消",
  connectionCount: "{n} 个连接",
  goesOnIn: "{time}后重试", goesOnNow: "正在重试", followUpRunning: "正在执行后续操作（如解压）",
  followUpFailed: "后续操作（如解压）失败",
  "limit.host": "每个主机最多 {n} 个", "limit.group": "分组“{group}”最多 {n} 个", "limit.total": "最多同时下载 {n} 个",

  // 等待的原因（不显示 towd 给出的原因时）
  "waits.retry": "上次下载尝试失败", "waits.server": "服务器要求稍后重试",
  "waits.network": "无法连接到服务器", "waits.diskSpace": "磁盘空间不足，有足够空间后会继续下载",
  "waits.destination": "暂时无法写入目标目录，可以写入后会继续下载",

  // 简短的错误说明；详情中有 towd 的完整消息
  "error.unusableURL": "地址无效或不受支持，请输入新地址",
  "error.unusableDestination": "无法使用此文件夹，请检查该文件夹是否存在及其权限",
  "error.destinationExists": "已存在同名文件，请移走或重命名该文件后重试",
  "error.destinationBusy": "另一个进程正在下载到同一文件，请在它结束后重试",
  "error.diskFull": "磁盘已满，请释放空间后重试",
  "error.diskPermission": "没有写入此文件夹的权限，请修改权限后重试",
  "error.diskFailure": "磁盘出错，请检查磁盘后重试",
  "error.unsupportedJournal": "此下载由更新版本的 Towline 创建，请更新 Towline 后继续",
  "error.changedOnServer": "服务器上的文件已更改，重试即可下载新版本",
  "error.checksumMismatch": "文件与校验和不匹配，请检查校验和与来源",
  "error.refusedByServer": "服务器拒绝了请求，请检查地址和密码",
  "error.notFound": "服务器上找不到该文件，请检查地址",
  "error.redirectRefused": "服务器的重定向不被允许或没有终点，请检查地址",
  "error.untrustedServer": "服务器证书不受信任，请检查地址或联系服务器管理员",
  "error.invalidResponse": "服务器的响应无效，请稍后重试",
  "error.transient": "所有尝试均失败，请稍后重试",
  "error.lengthUnproven": "服务器关闭了连接，文件可能不完整，请重试",
  "error.archiveRefused": "压缩包不安全或不受支持，未解压",
  "error.archiveDamaged": "压缩包已损坏，未解压，请重新下载",
  "problem.403": "访问被拒绝", "problem.404": "未找到", "problem.429": "请求过多",

  // 网络原因（代替错误显示）
  "network.hostNotFound": "找不到主机名", "network.connectionFailed": "无法连接到服务器",
  "network.connectionTimedOut": "连接服务器超时", "network.connectionLost": "服务器关闭了连接",
  "network.responseTimedOut": "服务器没有及时响应", "network.malformedResponse": "服务器的响应无效",
  "network.proxyFailed": "代理服务器出错", "network.certificateRefused": "服务器证书不受信任",
  "network.clientCertificateRefused": "服务器拒绝了客户端证书", "network.tlsFailed": "无法与服务器建立加密连接",

  // 已不存在的文件夹
  folderLost: "{n} 个下载无法使用其文件夹：",
  chooseFolder: "选择其他文件夹", newFolder: "新文件夹", useFolder: "使用此文件夹",
  folderText: "如果该文件夹的路径已更改，请输入新路径。全部 {n} 个下载会在相同的子文件夹中继续。",
  folderChanged: "已更改 {n} 个下载的文件夹",

  // 数值
  of: "{held} / {length}", left: "剩余 {time}", seconds: "{n} 秒", minutes: "{n} 分", hours: "{n} 小时", days: "{n} 天",
  longTime: "100 天以上", exact: "{size}（{n} 字节）", progressOf: "{name} 的进度",

  // 操作
  actions: "操作", pause: "暂停", resume: "继续", goOnNow: "立即重试", retry: "重试", cancel: "取消下载",
  remove: "移除", moreFor: "{name} 的更多操作", copyAddress: "复制地址", copied: "地址已复制",
  cannotCopy: "无法复制：浏览器不允许此页面使用剪贴板。请在详情中手动复制地址",
  saveCopy: "另存副本", "move.up": "上移", "move.down": "下移", "move.top": "移到顶部",
  "move.bottom": "移到底部", movedTo: "{name} 已移到第 {n} 位",
  selection: "对所选下载的操作", clearSelection: "清除选择",
  selectedCount: "已选 {n} 个",
  removeTitle: { one: "移除{name}？", other: "移除 {n} 个下载？" },
  removeText: "下载将从列表中移除。除非勾选下面的选项，否则文件会保留在磁盘上。",
  removeFiles: "同时删除文件",
  removed: "已移除 {n} 个下载",
  pauseTitle: { one: "暂停{name}？", other: "暂停 {n} 个下载？" },
  pauseText: "服务器不支持断点续传：暂停后将从头开始下载。",
  cancelTitle: { one: "取消{name}？", other: "取消 {n} 个下载？" },
  cancelText: "取消会删除已下载的数据。如需保留数据并稍后继续，请改用“暂停”。",
  cancelDo: "取消下载", keepDownload: "保留下载",
  saidFinished: { one: "{name} 已完成", other: "{n} 个下载已完成" },
  saidFailed: { one: "{name} 失败", other: "{n} 个下载失败" },

  // 空列表
  emptyTitle: "还没有下载", emptyText: "在此页面任意处粘贴或拖入链接，或按 A 键添加链接。",
  emptyNarrowed: "没有匹配项", emptyNarrowedText: "没有符合搜索和筛选条件的下载。",
  showAll: "显示全部下载",

  // 详情
  details: "详情", closeDetails: "关闭详情", segmentMap: "分段", rateGraph: "下载速度",
  facts: "信息", timeline: "时间线", change: "选项", timelineEmpty: "还没有记录。", play: "播放",
  cannotPlay: "浏览器无法播放此文件。请另存副本后用其他播放器打开。",
  rateWords: "当前 {now}，最近 2 分钟最高 {highest}", rateNone: "最近 2 分钟没有收到数据",
  mapLabel: "已下载 {share}；字节范围：{ranges} 个；活动连接：{n} 个",
  legendThere: "已下载：{share}", legendMissing: "剩余：{size}", connectionNumber: "连接 {n}",
  attemptAt: "已到 {position}，下载到 {to}", thereShort: "已下载 {percent}",
  "fact.address": "地址", "fact.directory": "文件夹", "fact.length": "大小", "fact.held": "已下载", "fact.received": "上次启动后已接收",
  "fact.connections": "连接", "fact.group": "分组", "fact.added": "添加于", "fact.ended": "结束于",
  "fact.followUp": "后续操作", "fact.id": "ID",
  "followUp.running": "进行中", "followUp.done": "完成", "followUp.failed": "失败",
  "control.priority": "优先级", "control.rateLimit": "限速", "control.connections": "连接数",
  "control.group": "分组", "control.directory": "文件夹（移动文件之后）", "control.renewedLink": "新地址", renew: "使用此地址",
  renewText: "如果地址已过期，请输入同一文件的新地址。确认是同一文件后，已下载的数据会保留。",
  badRate: "速率无效。请输入带 K、M 或 G 的数字，例如 10M。",
  badLink: "地址无效。请输入以 http:// 或 https:// 开头的地址。",

  // 添加
  links: "链接", linksHint: "输入一个或多个链接，或粘贴包含链接的文字。",
  linksFound: "{n} 个链接",
  linesOdd: "已忽略 {n} 行没有链接的文字",
  notSupported: "不支持：{schemes}", takeHeaders: "使用命令中的请求头：{names}", moreLines: "还有 {n} 行",
  noLinks: "拖入的内容中没有 http 或 https 链接，未添加任何下载。", options: "选项",
  added: "已添加 {n} 个下载",
  badUser: "用户名和密码无效。请用冒号隔开两者，例如 anna:secret",
  sendsUser: "用户名“{user}”及其密码将发送到 {hosts}。", sendsHeaders: "请求头 {names} 将发送到 {hosts}。",
  andMore: "{names} 和另外 {n} 个主机",
  badHeader: "请求头“{line}”无效。请按“名称: 值”的格式输入",
  "add.directory": "保存到文件夹", "add.name": "名称", "add.group": "分组", "add.priority": "优先级",
  "add.rateLimit": "限速", "add.connections": "连接数", "add.checksum": "校验和",
  "add.existing": "文件已存在时", "add.user": "服务器的用户名和密码", "add.headers": "请求头，每行一个",
  "add.startsPaused": "添加后暂停", "add.unpack": "下载后解压",
  downloadsFolder: "下载文件夹", fromServer: "由服务器给出",
  example: "例如：{value}", defaultIs: "默认：{value}", automatic: "自动",
  "existing.fail": "报告错误；名称由服务器给出时添加编号", "existing.rename": "保存为带编号的名称",
  "existing.overwrite": "覆盖文件", "existing.update": "服务器上的文件有变化时覆盖", "existing.skip": "保留文件并跳过下载",

  // 设置
  noLimit: "不限速", limitedTo: "限速 {rate}", limitNow: "全局限速：{limit}", limitTitle: "全局限速",
  limitField: "所有下载合计的限速",
  thisBrowser: "此浏览器", theService: "服务（towd）", theme: "外观", themeSystem: "跟随系统",
  themeLight: "浅色", themeDark: "深色", singleKeys: "单键快捷键（A、/、? ……）",
  "setting.maximumRunning": "同时下载数",
  "setting.maximumRunningPerHost": "每个主机的同时下载数", "setting.rateLimit": "全局限速",
  groupLimits: "每个分组的同时下载数", groupName: "分组", newGroup: "分组名称", groupLimit: "同时下载数",
  hosts: "主机", host: "主机", hostRunning: "进行中的下载", hostCeiling: "连接数上限",
  hostNotBefore: "最早请求时间",
  bookmarklet: "书签小工具", bookmarkletName: "添加到 Towline",
  bookmarkletDrag: "请将此按钮拖到书签栏",
  bookmarkletText: "将此按钮拖到书签栏。在任意网页上点击它，即可在 Towline 中添加选中的链接；未选中链接时添加该网页的地址。",

  // 登录
  signInTitle: "登录", signIn: "登录", signOut: "退出登录", token: "访问令牌", 
  usedLink: "此链接已失效：它只能在一小时内登录一次。请运行“tow page”获取新链接。",
  wrongToken: "访问令牌错误。请从 towd 的令牌文件中复制令牌。",
  signInText: "在运行 towd 的机器上运行“tow page”，打开它显示的链接即可登录。也可以输入 towd 的访问令牌。",
  tokenFile: "令牌在此文件中：", tokenPlace: "令牌在 towd 状态目录的文件“token”中。",
  cookiesBlocked: "浏览器阻止了用于保持登录的 Cookie。请允许此网站使用 Cookie，然后重新登录。",

  // 按键
  keyMove: "在下载之间移动", keySelect: "选择多个下载", keySelectAll: "选择全部下载",
  keyOpen: "打开详情", keyToggle: "暂停、继续或重试", keyRemove: "移除下载（会先询问）",
  keyCancel: "取消下载", keyRetry: "重试下载",
  keyReorder: "在队列中移动（Home：移到顶部，End：移到底部）", keyMenu: "打开下载的菜单",
  keyTab: "转到下载的按钮", keyEscape: "关闭对话框或详情，或清除选择",
  keyAdd: "添加链接", keyPaste: "添加剪贴板中的链接", keySearch: "搜索",
  keyLimit: "设置全局限速", keySettings: "打开设置", keyHelp: "显示此快捷键列表",
};
