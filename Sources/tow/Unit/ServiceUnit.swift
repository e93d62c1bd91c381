import TowlineCore

/// The unit that has systemd's user manager run `towd` (systemd.unit(5), systemd.service(5), systemd.exec(5)).
struct ServiceUnit: Hashable {
    /// The program, as an absolute path.
    let program: String
    /// What it is given.
    let arguments: [String]

    /// Its name.
    static let name = "towd.service"
    /// The first line of what `tow service install` writes: by it a unit is known to be replaceable.
    static let mark = "# Written by 'tow service install'. Changes of your own: systemctl --user edit towd"

    /// What is there of hardening works without privileges: it is filters of system calls, which a user's manager may
    /// set. Views of the file system (ProtectSystem= and the like) need user namespaces there, which many systems
    /// forbid, and then the service would not start at all; where downloads may go is checked by `towd` itself.
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
        # 2: usage error. 9: another towd uses the list of downloads. A restart would not help in either case.
        RestartPreventExitStatus=2 9
        TimeoutStopSec=15
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
