/// A named way to answer wrongly. Each constant and function of this type says which rows of the fault catalogue
/// it is for. A fault is put on chosen requests of a resource by a ``Behaviour``.
package struct Fault: Sendable {
    /// The name, as in Swift, without arguments.
    package let name: String
    /// Makes the reply.
    package let make: @Sendable (RequestContext) -> Reply

    /// A fault.
    package init(_ name: String, _ make: @escaping @Sendable (RequestContext) -> Reply) {
        self.name = name
        self.make = make
    }

    /// A fault that changes the head of the correct reply.
    static func head(
        _ name: String, _ change: @escaping @Sendable (inout ReplyHead, RequestContext) -> Void
    ) -> Fault {
        Fault(name) { context in context.correct.head { change(&$0, context) } }
    }

    /// A fault that sends the head of the correct reply and other steps for its body.
    static func body(_ name: String, _ steps: @escaping @Sendable (RequestContext) -> [Reply.Step]) -> Fault {
        Fault(name) { $0.correct.body(steps($0)) }
    }
}
