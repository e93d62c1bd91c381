import TowlineCore

/// The unit that has systemd's user manager run `towd` (systemd.unit(5), systemd.service(5), systemd.exec(5)).
struct ServiceUnit: Hashable {
    /// The program, as an absolute path.
    let program: String
    /// What it is given.
    let arguments: [String]
    /// True if the unit contains the restrictions that need a user namespace.
    var usesNamespaces = true

    /// Its name.
    static let name = "towd.service"
    /// The first line of what `tow service install` writes: by it a unit is known to be replaceable.
    static let mark = "# Written by 'tow service install'. Changes of your own: systemctl --user edit towd"

    /// The restrictions that need a user namespace (systemd.exec(5), `PrivateUsers=`). Where the system forbids user
    /// namespaces, a service with them does not start: exit status 217, 218 or 226. `UserManager.allowsNamespaces`
    /// tries.
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

    /// Places where a program could get out of the unit or find keys. towd needs none of them, except to read its
    /// configuration file.
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

    /// No `UMask=`: finished files have mode 0666 less the umask, and other users, such as a media server, may read
    /// them. Files with secrets have mode 0600 whatever the umask. Pages that the kernel caches count as memory, but it
    /// frees them at `MemoryHigh=`.
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
        Restart=on-failure
        RestartSec=5
        # 2: usage error. 9: another towd uses the list of downloads. 217, 218, 226: the system forbids a restriction.
        # A restart would not help.
        RestartPreventExitStatus=2 9 217 218 226
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

    /// A path of its own: no quotes, with what systemd would replace doubled (systemd.unit(5), "Specifiers").
    static func path(_ text: String) -> String { String(text.flatMap { $0 == "%" ? "%%" : String($0) }) }

    /// One word of a command line: in quotes, with what systemd would replace doubled (systemd.service(5), "Command
    /// lines"; systemd.unit(5), "Specifiers").
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
