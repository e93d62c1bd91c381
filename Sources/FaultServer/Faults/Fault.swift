/// A named faulty reply. The comment of each constant and function names its rows of the fault catalogue.
/// A ``Behaviour`` applies a fault to selected requests of a resource.
package struct Fault: Sendable {
    /// The name, as in Swift, without arguments.
    package let name: String
    /// Returns the reply to a request.
    package let make: @Sendable (RequestContext) -> Reply

    /// Creates a fault.
    package init(_ name: String, _ make: @escaping @Sendable (RequestContext) -> Reply) {
        self.name = name
        self.make = make
    }

    /// Returns a fault that changes the head of the correct reply.
    static func head(
        _ name: String, _ change: @escaping @Sendable (inout ReplyHead, RequestContext) -> Void
    ) -> Fault {
        Fault(name) { context in context.correct.head { change(&$0, context) } }
    }

    /// Returns a fault that sends the head of the correct reply and other steps for its body.
    static func body(_ name: String, _ steps: @escaping @Sendable (RequestContext) -> [Reply.Step]) -> Fault {
        Fault(name) { $0.correct.body(steps($0)) }
    }
}
