import HTTPTypes
import Hummingbird
import TowlineWire

/// The route that finds links in a text. It changes nothing and sends no request.
struct LinkRoutes: Sendable {
    func add(to table: inout RouteTable) {
        table.add(.post, Wire.base + "/links") { request, _ in
            let limit = Wire.PastedText.maximumSize
            let text = try await Answer.read(Wire.PastedText.self, from: request, limit: limit).text
            var found = LinkReader.read(text)
            found.linesWithoutLink.removeLast(max(0, found.linesWithoutLinkCount - Wire.FoundLinks.maximumLines))
            return try Answer.json(found)
        }
    }
}
