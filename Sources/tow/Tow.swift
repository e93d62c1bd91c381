@main struct Tow { static func main() {} }
