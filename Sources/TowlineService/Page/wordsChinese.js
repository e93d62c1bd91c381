// 页面的简体中文文字。

export const chinese = {
  // 框架
  skipToList: "跳到列表", search: "搜索名称和地址", searchHint: "搜索", summary: "概况",
  add: "添加", addLinks: "添加链接", addMany: "添加 {n} 个", settings: "设置", helpTitle: "键盘快捷键",
  filter: "筛选", order: "排序", group: "分组", allGroups: "所有分组", downloads: "下载",
  pauseAll: "全部暂停", resumeAll: "全部继续", dropHere: "松开即可添加链接", close: "关闭",
  dismiss: "取消", save: "保存", saved: "已保存", set: "应用", none: "无", unknown: "尚不清楚",
  ascending: "升序；按下可反转", descending: "降序；按下可反转",
  connectionLost: "服务没有响应，正在重试……", noAnswer: "服务没有响应。",

  // 筛选、排序、合计
  "filter.all": "全部", "filter.active": "进行中", "filter.queued": "等待", "filter.paused": "已暂停",
  "filter.finished": "已完成", "filter.failed": "失败",
  "order.queue": "队列", "order.added": "添加时间", "order.name": "名称", "order.size": "大小", "order.state": "状态",
  "order.ended": "结束时间",
  "sum.active": "{n} 个进行中", "sum.waiting": "{n} 个等待", "sum.paused": "{n} 个已暂停", "sum.failed": "{n} 个失败",
  allDone: "全部完成", nothingYet: "暂无任务",

  // 状态
  "state.queued": "排队中", "state.connecting": "正在连接", "state.downloading": "正在下载",
  "state.verifying": "正在校验", "state.publishing": "正在写入磁盘", "state.finished": "已完成",
  "state.paused": "已暂停", "state.waiting": "等待中", "state.failed": "失败", "state.cancelled": "已取消",
  connectionCount: "{n} 个连接",
  goesOnIn: "{time}后继续", goesOnNow: "即将继续", followUpRunning: "正在解压或移动", followUpFailed: "后续处理失败",

  // 等待的原因
  "waits.retry": "稍后重试", "waits.server": "服务器要求稍后再试", "waits.network": "暂时无法从服务器获取",
  "waits.diskSpace": "磁盘空间不足",

  // 错误
  "error.unusableURL": "地址无法使用", "error.unusableDestination": "无法保存到该位置",
  "error.destinationExists": "已有同名文件", "error.destinationBusy": "另一个进程正在使用它",
  "error.diskFull": "磁盘已满", "error.diskPermission": "没有写入权限", "error.diskFailure": "磁盘出错",
  "error.unsupportedJournal": "由更新的版本创建", "error.changedOnServer": "服务器上的文件已改变",
  "error.checksumMismatch": "校验和不符", "error.refusedByServer": "服务器拒绝",
  "error.notFound": "服务器上没有该文件", "error.redirectRefused": "没有跟随重定向",
  "error.untrustedServer": "服务器不受信任", "error.invalidResponse": "服务器的响应无法理解",
  "error.transient": "所有尝试均失败；重试可继续", "error.lengthUnproven": "无法确认文件是否完整",
  "error.archiveRefused": "压缩包未解压", "error.archiveDamaged": "压缩包已损坏",
  "problem.403": "不允许", "problem.404": "已不存在", "problem.429": "请求过多",

  // 数值
  of: "{held} / {length}", left: "剩余 {time}", seconds: "{n} 秒", minutes: "{n} 分", hours: "{n} 小时", days: "{n} 天",
  longTime: "很久", exact: "{size}（{n} 字节）", progressOf: "{name} 的进度",

  // 操作
  actions: "操作", pause: "暂停", resume: "继续", goOnNow: "立即继续", retry: "重试", cancel: "取消下载", remove: "移除",
  moreFor: "{name} 的更多操作", copyAddress: "复制地址", copied: "地址已复制", cannotCopy: "浏览器不允许此页面复制",
  saveCopy: "另存副本", "move.up": "上移", "move.down": "下移", "move.top": "移到最前", "move.bottom": "移到最后",
  movedTo: "{name} 现在是第 {n} 个", selection: "所选", clearSelection: "清除",
  selectedCount: "已选 {n} 个",
  removeTitle: { one: "移除{name}？", other: "移除 {n} 个下载？" },
  removeText: "它将从列表中消失。磁盘上的内容会保留，除非另行指定。",
  removeFiles: "同时删除文件", removed: "已移除 {n} 个",
  cancelTitle: { one: "取消{name}？", other: "取消 {n} 个下载？" },
  cancelText: "已下载的内容会被删除。若想保留并稍后继续，请改用暂停。",
  cancelDo: "取消下载", keepDownload: "保留",
  saidFinished: { one: "{name} 已完成", other: "{n} 个下载已完成" },
  saidFailed: { one: "{name} 失败", other: "{n} 个下载失败" },

  // 空列表
  emptyTitle: "还没有下载", emptyText: "在此页面任意处粘贴或拖入链接，或按 A 键。",
  emptyNarrowed: "没有匹配项", emptyNarrowedText: "没有下载符合搜索和筛选条件。", showAll: "显示全部",

  // 详情
  details: "详情", closeDetails: "关闭详情", segmentMap: "分段", rateGraph: "速率", facts: "信息", timeline: "时间线",
  change: "更改", timelineEmpty: "还没有发生任何事。", play: "播放", cannotPlay: "浏览器无法播放此文件。",
  rateWords: "当前 {now}，最近两分钟最高 {highest}", rateNone: "最近两分钟没有数据",
  mapLabel: "已有 {share}，共 {ranges} 段；{n} 个连接正在工作",
  legendThere: "已有：{share}", legendMissing: "缺少：{size}", connectionNumber: "连接 {n}", attemptAt: "位于 {position}，直到 {to}",
  thereShort: "已有 {percent}",
  "fact.address": "地址", "fact.directory": "文件夹", "fact.error": "错误", "fact.message": "消息", "fact.reason": "原因",
  "fact.length": "完整大小", "fact.held": "已有", "fact.received": "本次接收", "fact.connections": "连接",
  "fact.group": "分组", "fact.added": "添加于", "fact.ended": "结束于", "fact.followUp": "后续处理", "fact.id": "标识",
  "followUp.running": "进行中", "followUp.done": "完成", "followUp.failed": "失败",
  "control.priority": "优先级", "control.rateLimit": "限速", "control.connections": "连接数",
  "control.group": "分组", "control.renewedLink": "新链接", unchanged: "保持不变", renew: "使用此链接",
  renewText: "链接过期时：填入指向同一文件的新链接。若证明是同一文件，已有的字节会保留。",
  badRate: "速率是带 K、M 或 G 的数字，例如 10M。", badLink: "这不是 http 或 https 地址。",

  // 添加
  links: "链接", linksHint: "一个或多个，可粘贴任意文字：会自动挑出链接。",
  linksFound: "{n} 个链接", linesOdd: "{n} 行没有链接",
  noLinks: "拖入的内容里没有 http 或 https 链接。", options: "选项",
  added: "已添加 {n} 个下载", badHeader: "“{line}”不是请求头：名称: 值",
  "add.directory": "文件夹", "add.name": "名称", "add.group": "分组", "add.priority": "优先级", "add.rateLimit": "限速",
  "add.connections": "连接数", "add.checksum": "校验和", "add.existing": "文件已存在时", "add.user": "用户名和密码",
  "add.headers": "请求头，每行一个", "add.startsPaused": "添加后暂停", "add.unpack": "完成后解压",
  downloadsFolder: "下载文件夹", fromServer: "由服务器决定", userHint: "用户名:密码",
  "existing.fail": "停止；服务器给的名称则加编号", "existing.rename": "换一个名称", "existing.overwrite": "替换", "existing.skip": "保留原文件并视为完成",

  // 设置
  noLimit: "不限速", limitedTo: "限速 {rate}", limitNow: "全局限速：{limit}", limitTitle: "全局限速", limitField: "所有下载合计的上限",
  thisBrowser: "此浏览器", theService: "服务", theme: "外观", themeSystem: "跟随系统", themeLight: "浅色", themeDark: "深色",
  singleKeys: "单键快捷键（A、/、? ……）",
  "setting.maximumRunning": "同时下载数", "setting.maximumRunningPerHost": "每个主机同时下载数", "setting.rateLimit": "全局限速",
  groupLimits: "每个分组同时下载数", groupName: "分组", groupLimit: "同时下载数",
  hosts: "主机", host: "主机", hostRunning: "进行中", hostCeiling: "连接上限", hostNotBefore: "不早于",
  bookmarklet: "书签工具", bookmarkletName: "添加到 Towline", bookmarkletDrag: "请把它拖到书签栏",
  bookmarkletText: "把它拖到书签栏。在任意网页上点击，即可把选中的链接或该网页本身交给 Towline 添加。",

  // 登录
  signInTitle: "登录", signIn: "登录", token: "令牌", wrongToken: "令牌不正确。",
  signInText: "此页面需要服务的令牌。令牌在运行 towd 的用户的文件 ~/.local/state/towline/token 中。",

  // 按键
  keyMove: "在下载之间移动", keySelect: "选择多个", keySelectAll: "全选", keyOpen: "打开详情",
  keyToggle: "暂停、继续或重试", keyRemove: "移除（会先询问）", keyCancel: "取消下载", keyRetry: "重试",
  keyReorder: "在队列中移动（Home、End：移到两端）", keyMenu: "下载的菜单", keyTab: "转到它的按钮", keyEscape: "关闭，或清除选择",
  keyAdd: "添加链接", keyPaste: "添加剪贴板里的链接", keySearch: "搜索", keyLimit: "限速", keySettings: "设置", keyHelp: "显示此列表",
};
