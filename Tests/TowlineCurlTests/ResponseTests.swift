import Synchronization
import Testing
import TowlineCore
import TowlineCurl
import TowlineEngine

extension CurlTransportTests {
    @Suite struct ResponseTests {
        @Test("A plain response arrives complete, with its fields in order")
        func plainResponse() async throws {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send(response("hello", fields: "ETag: \"a\"\r\nX-One:  1 \r\nx-one: 2\r\n"))
                connection.waitForPeer()
            }
            defer { server.close() }
            let record = await run(.make(server.url("/a?b=c"), [("Range", "bytes=0-"), ("X-Empty", "")]))
            #expect(record.end?.framing == .delimited)
            #expect(record.body == Array("hello".utf8))
            let head = try #require(record.heads.first)
            #expect(head.status == 200)
            #expect(head.version == .http1_1)
            #expect(head.fields.lines.map(\.name) == ["ETag", "X-One", "x-one", "Content-Length"])
            #expect(head.fields.values(named: "X-One") == ["1", "2"])
            let expected =
                "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nRange: bytes=0-\r\nX-Empty:\r\n\r\n"
            #expect(server.requestHeads == [expected])
        }

        @Test(
            "The end of a response shows whether the response is complete",
            arguments: [
                ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", "body", "delimited"),
                ("HTTP/1.1 200 OK\r\nContent-Length: 4, 4\r\n\r\nbody", "body", "delimited"),
                ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nbody", "body", "delimited"),
                ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody and more", "body", "delimited"),
                ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", "body", "delimited"),
                (
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n",
                    "body",
                    "delimited"
                ),
                (chunkedBody("Content-Length: 2", "Transfer-Encoding: chunked"), "body", "delimited"),
                (chunkedBody("Transfer-Encoding: Chunked", "Content-Length: 9"), "body", "delimited"),
                (chunkedBody("Content-Length: 2, 3", "Transfer-Encoding: chunked"), "body", "delimited"),
                (chunkedBody("Transfer-Encoding: chunked, chunked"), "body", "delimited"),
                (chunkedBody("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), "body", "delimited"),
                (chunkedBody("Transfer-Encoding: identity,chunked"), "body", "delimited"),
                ("HTTP/1.1 204 No Content\r\n\r\n", "", "delimited"),
                ("HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n", "", "delimited"),
                ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", "delimited"),
                ("HTTP/1.1 200 OK\r\n\r\nbody", "body", "closed"),
                ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nbody", "body", "closed"),
                ("HTTP/1.0 200 OK\r\n\r\nbody", "body", "closed"),
                ("HTTP/1.0 200 OK\r\n\r\n", "", "closed"),
                ("HTTP/1.1 999 Odd\r\nContent-Length: 4\r\n\r\nbody", "body", "delimited"),
                ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + response("body"), "body", "delimited"),
                ("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbody", "body", "bodyCut"),
                ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n", "body", "bodyCut"),
                ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nbody", "body", "bodyCut"),
                ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\nzz\r\n", "body", "malformed"),
                ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nbody", "", "malformed"),
                ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-4\r\nbody\r\n", "", "malformed"),
                ("", "", "closedBeforeHead"),
                ("HTTP/1.1 200 OK\r\n", "", "closedBeforeHead"),
                ("HTTP/1.1 200 OK\r\nContent-Le", "", "closedBeforeHead"),
                ("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n", "", "closedBeforeHead"),
                ("HTTP/1.1 103 Early Hints\r\n\r\n", "", "closedBeforeHead"),
            ])
        func framing(wire: String, body: String, end: String) async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send(wire)
            }
            defer { server.close() }
            let record = await run(.make(server.url()))
            #expect(record.body == Array(body.utf8))
            #expect(describe(record.end) == end)
        }

        @Test(
            "A response that is not HTTP, or is ambiguous, is refused before a byte of its body",
            arguments: [
                "hello\r\n\r\nbody",
                "HTTP/1.1 OK\r\n\r\nbody",
                "HTTP/1.1 20 OK\r\n\r\nbody",
                "HTTP/1.1 2000 OK\r\n\r\nbody",
                "HTTP/1.1 000 OK\r\n\r\nbody",
                "HTTP/7.3 200 OK\r\n\r\nbody",
                "ICY 200 OK\r\n\r\nbody",
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nno colon\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 4\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\n folded: 4\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: 4x\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: 0x4\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: 4,\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: 4, 5\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length:\r\n 4\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n 5\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r5\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\n\rContent-Length: 4\r\n\r\nbody",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: compress, chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
            ])
        func malformed(wire: String) async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send(wire)
            }
            defer { server.close() }
            let record = await run(.make(server.url()))
            #expect(record.end?.failureKind == .malformed)
            #expect(record.heads.isEmpty)
            #expect(record.body.isEmpty)
        }

        @Test(
            "A line that is no valid field is skipped, and no length or framing is taken from it",
            arguments: [
                "Content-Length : 2", "Content-Length\t: 2", "Content Length: 2", "Transfer-Encoding : chunked",
                "Content-Range : bytes 0-1/2", ": no name", "X Status: hit\r\n Content-Length: 2",
                "Content-Length : 2\r\n 3", "X: a\rContent-Length: 2", "X: a\r", "\u{E9}: x", "PHP Warning: a 'b' in c",
                "X:\r\n folded\r\n\tagain", "Connection:\r\n close",
            ])
        func skipped(line: String) async throws {
            for fields in ["\(line)\r\nContent-Length: 4\r\n", "Content-Length: 4\r\n\(line)\r\n"] {
                let server = ScriptedServer { connection, server in
                    _ = server.head(from: connection)
                    connection.send("HTTP/1.1 200 OK\r\nETag: \"a\"\r\n\(fields)\r\nbody")
                }
                defer { server.close() }
                let record = await run(.make(server.url()))
                #expect(record.body == Array("body".utf8))
                #expect(describe(record.end) == "delimited")
                let head = try #require(record.heads.first)
                #expect(head.fields.values(named: "Content-Length") == ["4"])
                #expect(!head.fields.has("Transfer-Encoding") && !head.fields.has("Content-Range"))
                #expect(head.fields.value(named: "ETag") == "\"a\"")
            }
        }

        @Test("White space before the colon keeps no other field from being read")
        func spaceBeforeColon() async {
            let server = ScriptedServer(responses: { _ in response("body", fields: "ETag : \"a\"\r\nX\t:b\r\n") })
            defer { server.close() }
            let record = await run(.make(server.url()))
            #expect(record.heads.first?.fields.value(named: "ETag") == "\"a\"")
            #expect(record.heads.first?.fields.value(named: "X") == "b")
        }

        @Test(
            "A malformed Transfer-Encoding without another framing is refused",
            arguments: ["Transfer-Encoding : chunked", "Transfer-Encoding\t:\r\n chunked"])
        func malformedCoding(line: String) async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                connection.send("HTTP/1.1 200 OK\r\n\(line)\r\n\r\n4\r\nbody\r\n0\r\n\r\n")
            }
            defer { server.close() }
            let record = await run(.make(server.url()))
            #expect(record.end?.failureKind == .malformed)
            #expect(record.body.isEmpty)
        }

        @Test("An unrequested compressing transfer coding is removed", arguments: [true, false])
        func compressedTransfer(isChunked: Bool) async {
            // The bytes are "body", compressed by gzip.
            let coded: [UInt8] = [
                0x1F, 0x8B, 0x08, 0, 0, 0, 0, 0, 2, 3, 0x4B, 0xCA, 0x4F, 0xA9, 4, 0, 0xB2, 0x0B, 0xA8, 0xDB, 4, 0, 0, 0,
            ]
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                let coding = isChunked ? "gzip, chunked" : "gzip"
                connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: \(coding)\r\nContent-Length: 3\r\n\r\n")
                if isChunked { connection.send("\(String(coded.count, radix: 16))\r\n") }
                connection.send(coded)
                if isChunked { connection.send("\r\n0\r\n\r\n") }
            }
            defer { server.close() }
            let record = await run(.make(server.url()))
            #expect(record.body == Array("body".utf8))
            #expect(describe(record.end) == (isChunked ? "delimited" : "closed"))
        }

        @Test("A reset ends in bodyCut or closedBeforeHead, never in a complete response", arguments: [true, false])
        func reset(inBody: Bool) async {
            let server = ScriptedServer { connection, server in
                _ = server.head(from: connection)
                if inBody {
                    connection.send("HTTP/1.1 200 OK\r\n\r\nbody")
                    // Otherwise the reset would overtake the bytes and discard them.
                    server.waitForTest()
                }
                connection.resetOnClose()
            }
            defer { server.close() }
            let receiver = RecordingReceiver(onBody: { _, _ in
                server.proceed()
                return .consumed
            })
            let record = await run(.make(server.url()), receiver)
            #expect(record.end?.failureKind == (inBody ? .bodyCut : .closedBeforeHead))
            #expect(record.body == (inBody ? Array("body".utf8) : []))
        }

        @Test("An entity tag that is not UTF-8 is sent back byte for byte")
        func rawBytes() async throws {
            let tag: [UInt8] = [0x22, 0xE9, 0x80, 0xFF, 0x22]
            let server = ScriptedServer { connection, server in
                guard connection.index == 0 else {
                    let lines = connection.readHeadBytes().split(separator: 0x0A)
                    let isEqual = lines.contains { $0.elementsEqual(Array("If-Range: ".utf8) + tag + [0x0D]) }
                    connection.send(response(isEqual ? "equal" : "different"))
                    return
                }
                _ = server.head(from: connection)
                connection.send(Array("HTTP/1.1 200 OK\r\nConnection: close\r\nETag: ".utf8) + tag)
                connection.send("\r\nContent-Length: 0\r\n\r\n")
            }
            defer { server.close() }
            let first = await run(.make(server.url()))
            let value = try #require(first.heads.first?.fields.value(named: "ETag"))
            #expect(EntityTag(fieldValue: value) != nil)
            let second = await run(.make(server.url(), [("If-Range", value)]))
            #expect(second.body == Array("equal".utf8))
        }

        /// Swift's `==` treats both spellings as the same text; on the wire they differ.
        @Test("Fields that differ only in their bytes are sent unchanged, one request after the other")
        func equalTextOtherBytes() async {
            let values = ["\"\u{E9}\"", "\"e\u{301}\"", "\"e\u{301}\"", "\"\u{E9}\""]
            let sent = Mutex<[[UInt8]]>([])
            let server = ScriptedServer { connection, _ in
                let lines = connection.readHeadBytes().split(separator: 0x0A)
                let line = lines.first { $0.starts(with: "If-Range: ".utf8) } ?? []
                sent.withLock { $0.append(line.dropFirst("If-Range: ".utf8.count).dropLast()) }
                connection.send(response("", fields: "Connection: close\r\n"))
            }
            defer { server.close() }
            let transport = CurlTransport()
            for value in values {
                let record = await run(.make(server.url(), [("If-Range", value)]), on: transport)
                #expect(record.heads.first?.status == 200)
            }
            #expect(sent.withLock { $0 } == values.map { Array($0.utf8) })
        }

        @Test("Redirects and coded bodies are delivered unchanged")
        func nothingIsInterpreted() async {
            let server = ScriptedServer(responses: { _ in
                response(
                    "\u{1F}not gzip", status: "302 Found",
                    fields: "Location: http://127.0.0.1:1/\r\nContent-Encoding: gzip\r\n")
            })
            defer { server.close() }
            let record = await run(.make(server.url(), [("Accept-Encoding", "gzip")]))
            #expect(record.heads.first?.status == 302)
            #expect(record.body == Array("\u{1F}not gzip".utf8))
            #expect(server.requestHeads.count == 1)
        }
    }
}

/// A response with the body "body" in one chunk.
private func chunkedBody(_ fields: String...) -> String {
    "HTTP/1.1 200 OK\r\n" + fields.map { "\($0)\r\n" }.joined() + "\r\n4\r\nbody\r\n0\r\n\r\n"
}

/// Returns the framing of a complete response or the kind of its failure, as text.
func describe(_ end: AttemptEnd?) -> String {
    switch end {
    case .complete(let framing): "\(framing)"
    case .failed(let failure): "\(failure.kind)"
    case .stopped: "stopped"
    case .cancelled: "cancelled"
    case nil: "none"
    }
}
