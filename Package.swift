// swift-tools-version: 6.2
import PackageDescription

/// Our own targets build in Swift 6 mode with every warning an error; dependencies keep their own settings.
let strict: [SwiftSetting] = [
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
]

/// For apps: declarations are on the main actor unless they say otherwise, as in new projects of Xcode.
let app = strict + [.defaultIsolation(MainActor.self)]

/// For tests that measure nothing: a release build exists for those that do, and need not optimise the others. It could
/// not: Swift 6.3's optimiser fails on some that await an `async let` of a result.
let unmeasured = strict + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

/// The registry and the logger, which `tow` does not need. Without the trait `Library`, the library has no libcurl.
let library = TargetDependencyCondition.when(traits: ["Library", "URLSession"])

/// The C library checks the sizes of buffers where the compiler knows them (feature_test_macros(7)), which takes an
/// optimiser.
let checked: [CSetting] = [.define("_FORTIFY_SOURCE", to: "3", .when(configuration: .release))]

let package = Package(
    name: "towline",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "tow", targets: ["tow"]),
        .executable(name: "towd", targets: ["towd"]),
        .library(name: "Towline", targets: ["Towline"]),
        .library(name: "TowlineTesting", targets: ["TowlineTesting"]),
        .library(name: "TowlineRemote", targets: ["TowlineRemote"]),
        .library(name: "TowlineURLSession", targets: ["TowlineURLSession"]),
    ],
    traits: [
        .default(enabledTraits: ["Library", "Service", "FaultServer"]),
        .trait(
            name: "Library", description: "The library with libcurl: the registry, a logger and the libcurl transport"),
        .trait(
            name: "URLSession", description: "The library without libcurl, for an app that uses TowlineURLSession"),
        .trait(
            name: "Service", description: "What `towd` needs: an HTTP server, a reader of its configuration file",
            enabledTraits: ["Library"]),
        .trait(name: "FaultServer", description: "What the tests need: the server of named faults"),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.0"),
        .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    ],
    targets: [
        // What to do: values and decisions. Sees nothing, not even Foundation.
        .target(name: "TowlineCore", swiftSettings: strict),

        // Doing it: ports and the runner.
        .target(name: "TowlineEngine", dependencies: ["TowlineCore"], swiftSettings: strict),

        // Adapters: each sees the engine, never another adapter.
        .target(
            name: "TowlineDisk",
            dependencies: ["TowlineCore", "TowlineEngine", "TowlineThreads", "CTowline", "CCrypto"],
            swiftSettings: strict),
        .target(
            name: "TowlineCurl", dependencies: ["TowlineCore", "TowlineEngine", "TowlineThreads", "CTowline", "CCurl"],
            swiftSettings: strict),

        // HTTP over the networking of the system, for apps on Apple platforms. Links no libcurl of its own.
        .target(name: "TowlineURLSession", dependencies: ["TowlineCore", "TowlineEngine"], swiftSettings: strict),

        .target(
            name: "TowlineRegistry",
            dependencies: [
                "TowlineCore", "TowlineEngine",
                .product(name: "GRDB", package: "GRDB.swift", condition: library),
            ],
            swiftSettings: strict),

        // The library: assembles the above for an app.
        .target(
            name: "Towline",
            dependencies: [
                "TowlineCore", "TowlineEngine", "TowlineDisk", "TowlineRegistry", "TowlineArchive", "TowlineSystem",
                "TowlineThreads", .target(name: "TowlineCurl", condition: .when(traits: ["Library"])),
                .product(name: "Logging", package: "swift-log", condition: library),
            ],
            swiftSettings: strict),
        .target(
            name: "TowlineArchive",
            dependencies: ["TowlineCore", "TowlineEngine", "TowlineThreads", "CTowline", "CUnpack"],
            swiftSettings: strict),
        .target(
            name: "TowlineSystem", dependencies: ["TowlineCore", "TowlineEngine", "TowlineThreads", "CTowline"],
            swiftSettings: strict),

        // A network in memory, for the tests of an app that uses the library.
        .target(
            name: "TowlineTesting", dependencies: ["Towline", "TowlineCore", "TowlineEngine"], swiftSettings: strict),

        // Threads for what blocks; the adapters' common ground.
        .target(name: "TowlineThreads", dependencies: ["TowlineCore", "CTowline"], swiftSettings: strict),

        // The service: the library behind HTTP. Its words are shared with `tow`, which links no server.
        .target(name: "TowlineWire", dependencies: ["TowlineCore"], swiftSettings: strict),
        // The client of the service's API, for `tow` and for apps.
        .target(
            name: "TowlineClient", dependencies: ["TowlineCore", "TowlineCurl", "TowlineWire"], swiftSettings: strict),
        // The list of the service, for an app whose downloads continue when it is closed.
        .target(
            name: "TowlineRemote", dependencies: ["Towline", "TowlineCore", "TowlineClient", "TowlineWire"],
            swiftSettings: strict),
        .target(
            name: "TowlineService",
            dependencies: [
                "Towline", "TowlineWire", "CPage",
                .product(name: "Hummingbird", package: "hummingbird", condition: .when(traits: ["Service"])),
                .product(name: "Yams", package: "Yams", condition: .when(traits: ["Service"])),
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["Service"])),
            ],
            exclude: ["API", "Page"],
            swiftSettings: strict),
        .executableTarget(
            name: "towd",
            dependencies: [
                "Towline", "TowlineWire", "TowlineService", "CTowline",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict),

        // C: headers for libraries of the system, and the calls that Swift cannot spell.
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        // The confined reader of archives. Not by pkgConfig: SwiftPM would ask those who build `tow` alone to install
        // libarchive.
        .target(name: "CUnpack", cSettings: checked, linkerSettings: [.linkedLibrary("archive")]),
        .target(name: "CTowline", cSettings: checked),
        // The web page's files, embedded.
        .target(name: "CPage"),

        .executableTarget(
            name: "tow",
            dependencies: [
                "TowlineCore", "TowlineEngine", "TowlineDisk", "TowlineCurl", "TowlineThreads", "TowlineWire",
                "TowlineClient", "CTowline",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict,
            // First in the order in which symbols are looked for: most of what 35 libraries need is there.
            linkerSettings: [.linkedLibrary("c")]),

        // Small apps that use the public API only, each with a tutorial.
        .executableTarget(
            name: "towline-pause-and-resume", dependencies: ["Towline", "TowlineURLSession"],
            path: "Examples/PauseAndResume", swiftSettings: app),
        .executableTarget(
            name: "towline-file-list", dependencies: ["Towline"], path: "Examples/FileList", swiftSettings: app),
        .executableTarget(
            name: "towline-one-object-per-url", dependencies: ["Towline"], path: "Examples/OneObjectPerURL",
            swiftSettings: app),
        .executableTarget(
            name: "towline-background", dependencies: ["Towline", "TowlineURLSession"], path: "Examples/Background",
            swiftSettings: app),
        .executableTarget(
            name: "towline-archive", dependencies: ["Towline"], path: "Examples/Archive", swiftSettings: app),

        // The README's code, so that it compiles; scripts/house compares the two.
        .executableTarget(
            name: "towline-readme", dependencies: ["Towline"], path: "Examples/Readme", swiftSettings: strict),

        // For tests only.
        .target(
            name: "FaultServer",
            dependencies: [
                .product(name: "NIOCore", package: "swift-nio", condition: .when(traits: ["FaultServer"])),
                .product(name: "NIOPosix", package: "swift-nio", condition: .when(traits: ["FaultServer"])),
                .product(name: "NIOSSL", package: "swift-nio-ssl", condition: .when(traits: ["FaultServer"])),
                .product(name: "NIOHPACK", package: "swift-nio-http2", condition: .when(traits: ["FaultServer"])),
            ],
            swiftSettings: strict),
        .executableTarget(
            name: "fault-server", dependencies: ["FaultServer"], path: "Sources/FaultServerMain", swiftSettings: strict),

        // For benchmarks: a network with delays and limits. Needs no package.
        .systemLibrary(name: "CPoll"),
        .target(name: "ShapingProxy", dependencies: ["CPoll"], swiftSettings: strict),
        .executableTarget(
            name: "shaping-proxy", dependencies: ["ShapingProxy"], path: "Sources/ShapingProxyMain",
            swiftSettings: strict),

        // The engine with system calls that fail, or end the process.
        .executableTarget(
            name: "crash-victim",
            dependencies: ["TowlineCore", "TowlineEngine", "TowlineDisk", "TowlineCurl"], path: "Sources/CrashVictim",
            swiftSettings: strict),

        // Servers, proxies and certificates of the distribution, and traces of threads, for more than one test target.
        .target(
            name: "TestServers", dependencies: ["FaultServer", "TowlineThreads"], path: "Tests/TestServers",
            swiftSettings: strict),

        // A network, a disk and a clock in memory, for transfers that take hours or depend on timing.
        .target(
            name: "TransferSimulation", dependencies: ["TowlineCore", "TowlineEngine", "TowlineDisk", "FaultServer"],
            path: "Tests/Simulation", swiftSettings: unmeasured),

        // Random inputs for parsers, the same for each run of a seed.
        .target(name: "Fuzzing", path: "Tests/Fuzzing", swiftSettings: strict),

        // The registry by a script, for tests that watch its system calls or kill it.
        .executableTarget(
            name: "registry-victim", dependencies: ["TowlineCore", "TowlineEngine", "TowlineRegistry"],
            path: "Sources/RegistryVictim", swiftSettings: strict),

        .testTarget(name: "TowlineCoreTests", dependencies: ["TowlineCore", "Fuzzing"], swiftSettings: strict),
        .testTarget(
            name: "TowlineEngineTests",
            dependencies: ["TowlineCore", "TowlineEngine", "FaultServer", "TransferSimulation", "Fuzzing"],
            swiftSettings: unmeasured),
        .testTarget(
            name: "TowlineDiskTests",
            dependencies: ["TowlineCore", "TowlineEngine", "TowlineDisk", "TowlineThreads", "TransferSimulation"],
            swiftSettings: unmeasured),
        .testTarget(
            name: "TowlineCurlTests",
            dependencies: [
                "TowlineCore", "TowlineEngine", "TowlineCurl", "TowlineThreads", "FaultServer", "TestServers",
                "Fuzzing", "TransferSimulation",
            ],
            swiftSettings: unmeasured),
        // The contract and the scenarios of the other transport: `Shared` has links to their files.
        .testTarget(
            name: "TowlineURLSessionTests",
            dependencies: [
                "TowlineCore", "TowlineEngine", "TowlineDisk", "TowlineURLSession", "FaultServer", "TestServers",
                "TransferSimulation",
            ],
            swiftSettings: unmeasured),
        .testTarget(
            name: "TowlineRegistryTests",
            dependencies: [
                "TowlineCore", "TowlineEngine", "TowlineRegistry", "registry-victim", "Fuzzing",
                .product(name: "GRDB", package: "GRDB.swift", condition: library),
            ],
            swiftSettings: strict),
        .testTarget(
            name: "TowlineArchiveTests", dependencies: ["TowlineCore", "TowlineArchive", "CUnpack"],
            swiftSettings: unmeasured),
        .testTarget(
            name: "TowlineSystemTests",
            dependencies: ["TowlineCore", "TowlineEngine", "TowlineSystem", "TowlineThreads", "TestServers"],
            swiftSettings: unmeasured),
        .testTarget(
            name: "IntegrationTests",
            dependencies: [
                "TowlineCore", "TowlineEngine", "TowlineDisk", "TowlineCurl", "FaultServer", "TransferSimulation",
                "tow",
            ],
            swiftSettings: unmeasured),
        .testTarget(
            name: "CrashTests",
            dependencies: [
                "TowlineCore", "TowlineEngine", "TowlineDisk", "TowlineCurl", "FaultServer", "tow", "crash-victim",
            ],
            swiftSettings: unmeasured),
        .testTarget(
            name: "TowlineTests",
            dependencies: [
                "Towline", "TowlineCore", "TowlineEngine", "TowlineDisk", "TowlineCurl", "TowlineRegistry",
                "FaultServer", "TestServers", "TowlineTesting",
                .product(name: "Logging", package: "swift-log", condition: library),
            ], swiftSettings: strict),
        // The contract of the types that an app can use instead of each other.
        .testTarget(
            name: "DownloadManagerTests",
            dependencies: ["Towline", "TowlineTesting", "TowlineClient", "TowlineRemote", "FaultServer", "towd"],
            swiftSettings: unmeasured),
        .testTarget(
            name: "TowlineServiceTests",
            dependencies: [
                "Towline", "TowlineWire", "TowlineService", "FaultServer",
                .product(name: "NIOEmbedded", package: "swift-nio", condition: .when(traits: ["Service"])),
            ],
            swiftSettings: unmeasured),
        .testTarget(
            name: "OriginTests",
            dependencies: [
                "FaultServer", "TestServers", "towline-pause-and-resume", "towline-file-list",
                "towline-one-object-per-url", "towline-background", "towline-archive", "tow", "towd",
            ],
            exclude: ["private_addresses.py"], swiftSettings: unmeasured
        ),
        .testTarget(
            name: "WebPageTests", dependencies: ["FaultServer", "TestServers", "towd"],
            exclude: [
                "access_test.py", "api_document.py", "api_document.toml", "browser.py", "long_list_test.py",
                "page_test.py", "support.py", "tabs_test.py", "upkeep_test.py",
            ], swiftSettings: unmeasured),
        .testTarget(
            name: "FaultServerTests", dependencies: ["FaultServer", "ShapingProxy"], swiftSettings: unmeasured),
        .testTarget(
            name: "CommandLineTests",
            dependencies: [
                "TowlineCore", "TowlineEngine", "TowlineDisk", "TowlineCurl", "FaultServer", "ShapingProxy",
                "TestServers", "TowlineClient", "Fuzzing", "tow", "towd",
            ],
            swiftSettings: unmeasured
        ),
    ],
    swiftLanguageModes: [.v6]
)
