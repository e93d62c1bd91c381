// The least work that any downloader must do: one request, recv(2) into one buffer, pwrite(2) into one file.
//
//     floor PORT PATH OUTPUT
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { size = 256 << 10 };
static char buffer[size + 1];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

int main(int count, char **words) {
    if (count != 4) {
        fputs("usage: floor PORT PATH OUTPUT\n", stderr);
        return 2;
    }
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    int length = snprintf(buffer, size, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", words[2]);
    if (send(server, buffer, length, 0) != length) fail("send");
    int file = open(words[3], O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0) fail("open");

    // The head comes in one piece here, perhaps with the first bytes.
    ssize_t got = recv(server, buffer, size, 0);
    if (got <= 0) fail("recv");
    buffer[got] = 0;
    char *body = strstr(buffer, "\r\n\r\n");
    if (strncmp(buffer, "HTTP/1.1 200", 12) != 0 || !body) {
        fputs("floor: the server did not send a 200 response\n", stderr);
        return 3;
    }
    body += 4;
    got -= body - buffer;
    off_t offset = 0;
    while (got > 0 || offset == 0) {
        if (got > 0 && pwrite(file, body, got, offset) != got) fail("pwrite");
        offset += got;
        body = buffer;
        got = recv(server, buffer, size, 0);
        if (got == 0) break;
        if (got < 0) fail("recv");
    }
    return close(file) != 0;
}
