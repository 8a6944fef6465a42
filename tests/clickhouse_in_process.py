#!/usr/bin/env python3
"""Serves ClickHouse's HTTP interface from libchdb.so, today's ClickHouse as a library, for tests.

    clickhouse_in_process.py LIBRARY PORT DIRECTORY

Statements run one after the other. There are no users, no TLS and no shards.
"""
import ctypes
import http.server
import sys
import threading
import urllib.parse

# Parameters of the interface itself. All others are settings, which a release may not know any more.
OF_HTTP = {'database', 'query', 'wait_end_of_query', 'buffer_size'}


class Library:
    """A database in a directory, through the functions of chdb.h."""

    def __init__(self, path, directory):
        self.lib = ctypes.CDLL(path)
        for name, result, arguments in (
                ('connect', ctypes.POINTER(ctypes.c_void_p), [ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)]),
                ('query_n', ctypes.c_void_p,
                 [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]),
                ('result_buffer', ctypes.c_void_p, [ctypes.c_void_p]),
                ('result_length', ctypes.c_size_t, [ctypes.c_void_p]),
                ('result_error', ctypes.c_char_p, [ctypes.c_void_p]),
                ('destroy_query_result', None, [ctypes.c_void_p])):
            function = getattr(self.lib, 'chdb_' + name)
            function.restype, function.argtypes = result, arguments
        arguments = [b'clickhouse', b'--path=' + directory.encode()]
        self.connection = self.lib.chdb_connect(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
        self.lock = threading.Lock()
        self.rows = directory + '.rows'

    def run(self, statement):
        """Returns the answer. Raises ValueError with the server's text."""
        result = self.lib.chdb_query_n(self.connection[0], statement, len(statement), b'TabSeparated', 12)
        error = self.lib.chdb_result_error(result)
        answer = b''
        if error is None and self.lib.chdb_result_length(result) > 0:
            answer = ctypes.string_at(self.lib.chdb_result_buffer(result), self.lib.chdb_result_length(result))
        self.lib.chdb_destroy_query_result(result)
        if error is not None:
            raise ValueError(error)
        return answer

    def ask(self, parameters, body):
        settings = {name: value for name, value in parameters.items() if name not in OF_HTTP}
        with self.lock:
            self.run(b'USE ' + parameters.get('database', 'default').encode())
            try:
                for name, value in settings.items():
                    self.run(f'SET {name} = {value}'.encode())
                return self.run(self.insert(parameters['query'], body) if 'query' in parameters else body)
            finally:
                for name in settings:
                    self.run(f'SET {name} = DEFAULT'.encode())

    def insert(self, statement, rows):
        """Returns the INSERT with its rows in a file, which the lock guards."""
        with open(self.rows, 'wb') as file:
            file.write(rows)
        head, of_format = statement.rsplit(' FORMAT ', 1)
        return f"{head} FROM INFILE '{self.rows}' FORMAT {of_format}".encode()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    library = None

    def log_message(self, *_):
        pass

    def reply(self, status, body):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(200, b'Ok.\n')

    def do_POST(self):
        parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        try:
            self.reply(200, self.library.ask(parameters, body))
        except ValueError as error:
            self.reply(500, error.args[0])


Handler.library = Library(sys.argv[1], sys.argv[3])
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[2])), Handler).serve_forever()
