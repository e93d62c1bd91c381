/// Describes each step of a transfer in a line, for `tow get -v` and the log of an app: an event and its actions.
///
/// A line contains no header fields, no passwords and no query of a requested URL. Errors have the text that users see.
package enum TransferTrace {
    /// Returns the line for a step; `nil` for a tick (a timer event) without actions.
    package static func line(_ event: TransferEvent, _ actions: [TransferAction]) -> String? {
        let steps = actions.compactMap(text)
        if case .tick = event, steps.isEmpty { return nil }
        return steps.isEmpty ? text(event) : text(event) + " -> " + steps.joined(separator: "; ")
    }

    /// Returns the text of a trace line for a request that is sent.
    package static func request(_ plan: AttemptPlan) -> String {
        var text = "send \(name(plan.id)) for \(bytes(plan.question.asked)) of \(plan.url.origin)\(plan.url.path)"
        if plan.isConfirmation { text += " to confirm a change" }
        if plan.isRace { text += " to replace a slow one" }
        if plan.isComparison { text += " to compare" }
        return text
    }

    /// Returns the text of a trace line for a response to a request.
    package static func response(to id: AttemptID, _ verdict: ResponseVerdict) -> String {
        "response to \(name(id)): \(response(verdict))"
    }

    private static func response(_ verdict: ResponseVerdict) -> String {
        switch verdict {
        case .partial(let range, let facts):
            "\(bytes(range)) of \(facts.representation.completeLength.map(String.init) ?? "an unknown length")"
        case .whole(let facts):
            "the whole file of \(facts.representation.completeLength.map(String.init) ?? "unknown") bytes"
        case .empty: "an empty file"
        case .complete(let length): "no more bytes than the \(length) that exist"
        case .askWithoutRange(let reason), .rangeRefused(let reason): "range refused (\(reason))"
        case .changed(let reason, _, _): "another version of the file (\(reason))"
        case .rangeIgnored: "the whole file instead of a range"
        case .notModified: "not modified"
        case .conditionRefused(let reason): "condition refused (\(reason))"
        case .weakened(let reason): "a weaker validator (\(reason))"
        case .redirect: "a redirect"
        case .linkExpired(let status, _): "status \(status); the link has expired"
        case .transient(let reason, let wait, _, _):
            "a temporary failure (\(reason))" + (wait.map { ", retry after \(seconds($0))" } ?? "")
        case .webPage(let reason): "a web page instead of the file (\(reason))"
        case .permanent(let error): "an error (\(error.message))"
        }
    }

    private static func text(_ event: TransferEvent) -> String {
        switch event {
        case .begin(nil): "start without bytes"
        case .begin(.some(let held)): "start with \(held.written.count) bytes of an earlier run"
        case .takenOver(let plan, _): "continue \(name(plan.id))"
        case .answered(let id, let verdict): response(to: id, verdict)
        case .ended(let id, let result): "end of \(name(id)): \(text(result))"
        case .prepared: "the part file is ready"
        case .storageFailed(let error): "disk error (\(error.message))"
        case .partLost(let reason): "the part file is lost (\(reason))"
        case .partDamaged(let reason): "the part file is damaged (\(reason))"
        case .tick: "time passed"
        case .checkpointed(let durable): "\(durable.count) bytes are saved to disk"
        case .checkpointFailed(let durable, let error):
            "sync failed (\(error.message)); only \(durable.count) bytes are saved to disk"
        case .verified(let mismatches): mismatches.isEmpty ? "the checksums match" : "a checksum does not match"
        case .published: "the file has its name"
        case .networkChanged(let network): "the network changed and is \(network)"
        case .wanted(let ranges): "a reader needs \(ranges.map(bytes).joined(separator: ", "))"
        case .stop: "stop"
        }
    }

    private static func text(_ result: AttemptResult) -> String {
        switch result {
        case .complete: "complete"
        case .stopped: "closed, all needed bytes arrived"
        case .cancelled: "cancelled"
        case .failed(let failure): "failed (\(failure.message))"
        case .sinkFailed(let error): "cannot write (\(error.message))"
        case .overlapDiffers: "the repeated bytes differ from those on disk"
        case .digestDiffers(let offset): "the digest of the response differs; bytes from \(offset) are wrong"
        case .needsOwnConnection: "too long for a shared connection"
        }
    }

    private static func text(_ action: TransferAction) -> String? {
        switch action {
        case .start(let plan): request(plan)
        case .cancel(let id): "cancel \(name(id))"
        case .shrink(let id, let end): "end \(name(id)) at \(end)"
        case .hold(let id, let offset, let time): "pause \(name(id)) at \(offset) for \(seconds(time))"
        case .proceed(let id): "accept the body of \(name(id))"
        case .prepare(let plan):
            plan.isReplacement
                ? "replace the part file\(plan.keepsReplaced ? ", which stays as the earlier one" : "")"
                : "create the part file"
        case .learn(let representation, _):
            "record the length \(representation.completeLength.map(String.init) ?? "(unknown)") and the validators"
        case .withdraw(let range): "discard \(bytes(range))"
        case .removeEarlier: "remove the earlier part file"
        case .resumeEarlier(let isOpen): isOpen ? "resume the part file" : "resume the earlier part file"
        case .adoptPart: "the samples of the part file are equal: record its inode number"
        case .verify(let checksums, _): "verify \(checksums.map(\.algorithm.rawValue).joined(separator: ", "))"
        case .setAside: "keep the wrong file"
        case .publish: "publish the file"
        // Notices are shown to the user separately.
        case .notice: nil
        case .report(let report, let origin): text(report, origin)
        case .finish(let ending): text(ending)
        }
    }

    private static func text(_ report: HostReport, _ origin: HTTPURL.Origin) -> String {
        switch report {
        case .leaveAlone(let time): "no request to \(origin.host) for \(seconds(time))"
        case .overloaded: "fewer requests to \(origin.host)"
        case .connections(let count): "at most \(count) connections to \(origin.host)"
        case .paysOff(let count): "\(count) connections to \(origin.host) are enough"
        case .sharingFailed: "no shared connection to \(origin.host)"
        }
    }

    private static func text(_ ending: TransferEnding) -> String {
        switch ending {
        case .finished: "finished"
        case .upToDate: "finished, the existing file is up to date"
        case .failed(let error): "failed (\(error.message))"
        case .stopped: "stopped"
        }
    }

    /// Returns the name of a request in the lines of the trace. The requests of a transfer are numbered from 1.
    private static func name(_ id: AttemptID) -> String { "request \(id.value & 0xFFFF_FFFF)" }

    private static func bytes(_ range: ByteRange) -> String {
        range.upperBound == .max ? "bytes \(range.lowerBound)-" : "bytes \(range.lowerBound)-\(range.upperBound - 1)"
    }

    private static func bytes(_ asked: ResponseQuestion.Asked) -> String {
        switch asked {
        case .whole: "all bytes"
        case .from(let lower): bytes(ByteRange(lower, .max))
        case .range(let range): bytes(range)
        }
    }

    private static func seconds(_ duration: Duration) -> String {
        let tenths = (duration / .milliseconds(100)).rounded()
        return "\(tenths / 10) s"
    }
}
