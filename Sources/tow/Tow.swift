import ArgumentParser
import Glibc
import TowlineCore

/// The entry point. Runs the command that the arguments name and maps errors to exit statuses.
@main
enum Tow {
    /// Not `async`: that would give the first thread to the main dispatch queue, which unblocks all signals there.
    static func main() {
        ProcessSetup.occupyStandardDescriptors()
        ProcessSetup.ignoreWriteSignals()
        let words = ProcessArguments.words.dropFirst()
        if words.first == GetShortcut.name {
            // Block before there is a second thread: threads inherit the signal mask.
            SignalWatcher.block()
        }
        if let plan = GetShortcut.plan(words) {
            ArgumentSecrets.blank()
            plan.confine()
            Assembly.warmUp()
            Assembly.executor.run { await run(plan) }
        }
        if Set(words) == ["--version", "-v"] { show(TowCommand.configuration.version + "\n" + GetPlan.testLimits()) }
        do {
            let command = try TowCommand.parseAsRoot(translated(words))
            ArgumentSecrets.blank()
            if let get = command as? GetCommand, let plan = try? get.checked() {
                plan.confine()
                Assembly.warmUp()
            }
            if command is WatchCommand { WatchSignals.block() }
            let parsed = ParsedCommand(command: command)
            Assembly.executor.run { await run(parsed) }
        } catch {
            leave(error)
        }
    }

    /// Returns the arguments with options of other programs replaced by those of `tow`. Prints notices about left-out
    /// options.
    private static func translated(_ words: ArraySlice<String>) -> [String] {
        guard words.first == GetShortcut.name else { return Array(words) }
        do throws(TowlineError) {
            let familiar = try FamiliarOptions(translating: words.dropFirst())
            let isQuiet = familiar.words.contains { $0 == "-q" || $0 == "--quiet" }
            var output = OutputDescriptor(STDERR_FILENO)
            for notice in familiar.notices where !isQuiet { output.write("tow: \(notice)\n") }
            return [GetShortcut.name] + familiar.words
        } catch {
            leave(error)
        }
    }

    /// A command that is passed from the thread that parsed it, which no longer uses it, to the thread that runs it.
    private struct ParsedCommand: @unchecked Sendable {
        let command: any ParsableCommand
    }

    private static func run(_ plan: GetPlan) async -> Never {
        do throws(TowlineError) {
            end(try await GetRun(plan: plan).perform())
        } catch {
            leave(error)
        }
    }

    private static func run(_ parsed: ParsedCommand) async -> Never {
        var command = parsed.command
        do {
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
            end(ExitStatus.success.rawValue)
        } catch let error as TowlineError {
            leave(error)
        } catch let problem as UsageProblem {
            leave(problem.text, ExitStatus.usage.rawValue)
        } catch let status as ExitCode {
            end(status.rawValue)
        } catch {
            leave(error)
        }
    }

    private static func leave(_ error: TowlineError) -> Never {
        leave("tow: \(TerminalSafeText.make(OptionNames.add(to: error.message)))", ExitStatus(error).rawValue)
    }

    /// Prints the message of the parser and ends the process. The parser's status for a usage error is 64; tow uses 2.
    private static func leave(_ error: any Error) -> Never {
        let code = TowCommand.exitCode(for: error)
        let text = TowCommand.fullMessage(for: error)
        guard code.isSuccess else {
            leave(
                Habit.answer(text, to: ProcessArguments.words.dropFirst()),
                code == .validationFailure ? ExitStatus.usage.rawValue : code.rawValue)
        }
        show(text)
    }

    private static func show(_ text: String) -> Never {
        var output = OutputDescriptor(STDOUT_FILENO)
        output.write(text + "\n")
        end(output.isBroken ? ExitStatus.failed.rawValue : ExitStatus.success.rawValue)
    }

    private static func leave(_ text: String, _ status: Int32) -> Never {
        var output = OutputDescriptor(STDERR_FILENO)
        // A message of the parser has several lines, so `TerminalSafeText` does not apply.
        output.write(ByteText.shown(text.hasSuffix("\n") ? text : text + "\n"))
        end(status)
    }

    /// Ends the process without the exit handlers of libraries: they would free memory that engine threads still use.
    private static func end(_ status: Int32) -> Never {
        fflush(nil)
        _exit(status)
    }
}
