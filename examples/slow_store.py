"""A server of files that answers like a store far away: each answer takes its time (docs/tutorial.md).

    store=$(python3 examples/slow_store.py FOLDER [PORT [SECONDS]])    # its process, which goes on in the background
    kill $store
"""
import http.server
import os
import re
import sys
import time

folder = sys.argv[1]
port = int(sys.argv[2]) if len(sys.argv) > 2 else 8125
seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.25


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(seconds)
        try:
            with open(os.path.join(folder, os.path.basename(self.path)), "rb") as file:
                data = file.read()
        except OSError:
            self.send_error(404)
            return
        wanted = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "bytes=0-"))
        first = int(wanted[1])
        part = data[first : int(wanted[2]) + 1 if wanted[2] else len(data)]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(data)}")
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        try:
            self.wfile.write(part)
        except OSError:
            self.close_connection = True

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("localhost", port), Store)
process = os.fork()
if process:
    print(process)
else:
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    server.serve_forever()
