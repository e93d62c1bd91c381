import TowlineCore

/// The unit with which systemd's user manager runs `towd` (systemd.unit(5), systemd.service(5), systemd.exec(5)).
struct ServiceUnit: Hashable {
    /// The absolute path of the program.
    let program: String
    let arguments: [String]
    /// `true` if the unit contains the restrictions that need a user namespace.
    var usesNamespaces = true

    static let name = "towd.service"
    /// The first line of a unit file that `tow service install` wrote. Only such a file may be replaced.
    static let mark = "# Written by 'tow service install'. Changes of your own: systemctl --user edit towd"

    /// The restrictions that need a user namespace (systemd.exec(5), `PrivateUsers=`). If the system forbids user
    /// namespaces, a service with these restrictions does not start: exit status 217, 218 or 226.
    /// `UserManager.allowsNamespaces` tests this.
    ///
    /// Not used: `ProtectSystem=strict` and `ProtectHome=`, because the directories of downloads may be named in the
    /// configuration file of `towd`, which `tow` does not read; `PrivateTmp=`, because downloads below `/tmp` would
    /// disappear; `ProcSubset=pid`, because the boot id is in `/proc/sys`; `~@resources`, because the process that
    /// unpacks archives limits its own memory.
    static let namespaceSettings = [
        "PrivateUsers=yes", "PrivateMounts=yes", "PrivateDevices=yes", "DevicePolicy=closed", "CapabilityBoundingSet=",
        "AmbientCapabilities=", "ProtectSystem=full", "ProtectProc=invisible", "ProtectClock=yes",
        "ProtectControlGroups=yes", "ProtectHostname=yes", "ProtectKernelLogs=yes", "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
    ]

    /// Settings that deny access to paths through which a program could escape from the unit or read keys. towd does
    /// not need these paths, except to read its configuration file.
    private static let places = """
        # Keys of the user, and the bus, over which programs can be started outside this unit.
        InaccessiblePaths=-%h/.ssh -%h/.gnupg -%t/bus -%t/systemd/private
        # Programs that start at login.
        ReadOnlyPaths=-%h/.config -%h/.local/bin -%h/.local/share/systemd
        """

    private var restrictions: String {
        guard usesNamespaces else { return "# Restrictions that need user namespaces were left out." }
        return (["# These need user namespaces."] + Self.namespaceSettings + [Self.places]).joined(separator: "\n")
    }

    /// The text of the unit. No `UMask=`: finished files have mode 0666 less the umask, and other users, such as a
    /// media server, may read them. Files with secrets have mode 0600 whatever the umask. Pages that the kernel caches
    /// count as memory, but the kernel frees them at `MemoryHigh=`.
    var text: String {
        """
        [Unit]
        Description=Towline download service
        Documentation=man:towd(1)
        # Without this condition, systemd would keep trying to start a program that was removed.
        ConditionFileIsExecutable=\(Self.path(program))

        [Service]
        Type=exec
        ExecStart=\(([program] + arguments).map { Self.word($0) }.joined(separator: " "))
        ExecReload=/bin/kill -HUP $MAINPID
        Restart=on-failure
        RestartSec=5
        # 2: usage error. 9: another towd uses the list of downloads. 78: wrong permissions, or a list of a newer version.
        # 217, 218, 226: the system forbids a restriction. A restart would not help.
        RestartPreventExitStatus=2 9 78 217 218 226
        TimeoutStopSec=15
        # towd needs less than 100 MB; unpacking an archive needs at most 256 MB more.
        MemoryHigh=768M
        MemoryMax=1G
        # If the kernel ends a process that unpacks an archive, towd reports the error and continues.
        OOMPolicy=continue
        NoNewPrivileges=yes
        LockPersonality=yes
        MemoryDenyWriteExecute=yes
        RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
        RestrictNamespaces=yes
        RestrictRealtime=yes
        RestrictSUIDSGID=yes
        SystemCallArchitectures=native
        SystemCallErrorNumber=EPERM
        SystemCallFilter=@system-service
        SystemCallFilter=~@privileged
        \(restrictions)

        [Install]
        WantedBy=default.target

        """
    }

    /// Returns a path as the whole value of a setting: without quotes, with `%` doubled (systemd.unit(5),
    /// "Specifiers").
    static func path(_ text: String) -> String { String(text.flatMap { $0 == "%" ? "%%" : String($0) }) }

    /// Returns one word of a command line: in quotes, with special characters escaped and `%` and `$` doubled
    /// (systemd.service(5), "Command lines"; systemd.unit(5), "Specifiers").
    static func word(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\", "\"": result += "\\" + String(scalar)
            case "%", "$": result += String(scalar) + String(scalar)
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
