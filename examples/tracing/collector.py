"""A collector on this machine: takes spans by OTLP over HTTP and prints them. `python collector.py [PORT]`."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_traces = self.path.endswith("/v1/traces")  # others send metrics and logs
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans if is_traces else ():
            for scope in resource.scope_spans:
                for span in scope.spans:
                    milliseconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e6
                    print(f"{span.trace_id.hex()[:8]}  {milliseconds:8.1f} ms  {span.name}", flush=True)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.end_headers()
        self.wfile.write(ExportTraceServiceResponse().SerializeToString())

    def log_message(self, format: str, *args: object) -> None:
        """Spans are what is to be seen."""


def main() -> None:
    server = HTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 4318), Collector)
    print(f"collecting at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
