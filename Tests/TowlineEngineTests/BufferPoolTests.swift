import Testing
import TowlineCore

@testable import TowlineEngine

@Suite("Memory for small files")
struct BufferPoolTests {
    private let pool = BufferPool()

    private func taken(_ count: Int) -> [UInt8]? {
        var buffer: [UInt8] = []
        return pool.take(count, into: &buffer) ? buffer : nil
    }

    @Test("the bytes held at once are limited, and returned buffers make room for others")
    func bounded() throws {
        var buffers: [[UInt8]] = []
        while let buffer = taken(1 << 20) { buffers.append(buffer) }
        let held = buffers.reduce(0) { $0 + $1.capacity }
        #expect((BufferPool.mostHeld - (16 << 10)...BufferPool.mostHeld).contains(held))
        // If many buffers are held, the pool grants capacity only as bytes arrive.
        let whole = buffers.prefix { $0.capacity >= 1 << 20 }.count
        #expect((14...16).contains(whole) && buffers[whole...].allSatisfy { $0.capacity < 20 << 10 })
        pool.give(&buffers[0])
        #expect(buffers[0].capacity == 0)
        var one = try #require(taken(1 << 20))
        #expect(pool.grow(&one, to: 500 << 10) && !pool.grow(&one, to: 2 << 20) && pool.grow(&one, to: one.capacity))
        for index in buffers.indices { pool.give(&buffers[index]) }
        #expect(pool.grow(&one, to: 4 << 20) && one.capacity >= 4 << 20)
    }

    @Test("bytes allocated elsewhere count, too")
    func adopted() {
        var bytes = [UInt8](repeating: 0, count: BufferPool.mostHeld)
        pool.adopt(bytes)
        #expect(taken(100) == nil)
        pool.give(&bytes)
        #expect(taken(100) != nil)
    }

    @Test("a buffer is reused, a large one for large files", arguments: [10_000, 64 << 10, 100_000, 1 << 20])
    func again(count: Int) throws {
        var buffer = try #require(taken(count))
        buffer.append(contentsOf: [1, 2, 3])
        let address = buffer.withUnsafeBytes { $0.baseAddress }
        pool.give(&buffer)
        let other = try #require(taken(count > 64 << 10 ? 10_000 : 100_000))
        #expect(other.withUnsafeBytes { $0.baseAddress } != address)
        let same = try #require(taken(count))
        #expect(same.isEmpty && same.withUnsafeBytes { $0.baseAddress } == address)
    }
}
