#include "store/sqlite/connection.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "base/error.h"

namespace xenoscope::store {
namespace {

constexpr int kLockTimeoutMs = 60'000;

absl::Status ErrorOf(sqlite3* database) {
  const char* const path = sqlite3_db_filename(database, "main");
  const std::string file = path == nullptr || *path == '\0' ? "the store" : path;
  const char* const why = sqlite3_errmsg(database);
  switch (sqlite3_errcode(database)) {
    case SQLITE_BUSY:
      return PreconditionError(
          "{}: another process has been writing to it for more than {} s; try again later", file,
          kLockTimeoutMs / 1000);
    case SQLITE_FULL:
      return ExhaustedError("{}: the disk is full; nothing of this slice was stored", file);
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return PermissionError("{}: {}; a store that is written needs its directory writable, too",
                             file, why);
    case SQLITE_CANTOPEN:
      return NotFoundError("{}: {}; check the path", file, why);
    case SQLITE_NOTADB:
      return InvalidError("{}: {}, so it is no store of Xenoscope; check the path", file, why);
    case SQLITE_CORRUPT:
      return InvalidError("{}: {}; restore it from a copy, or push to a new file", file, why);
    default:
      return InvalidError("{}: {}", file, why);
  }
}

absl::Status ErrorOf(sqlite3_stmt* statement) { return ErrorOf(sqlite3_db_handle(statement)); }

}  // namespace

Statement& Statement::Bind(int64_t number) {
  sqlite3_bind_int64(statement_.get(), next_parameter_++, number);
  return *this;
}

Statement& Statement::Bind(double number) {
  sqlite3_bind_double(statement_.get(), next_parameter_++, number);
  return *this;
}

Statement& Statement::Bind(std::string_view text) {
  sqlite3_bind_text64(statement_.get(), next_parameter_++, text.data(), text.size(),
                      SQLITE_TRANSIENT,  // NOLINT: SQLite's own cast
                      SQLITE_UTF8);
  return *this;
}

Statement& Statement::Bind(Bytes bytes) {
  sqlite3_bind_blob64(statement_.get(), next_parameter_++, bytes.data(), bytes.size(),
                      SQLITE_STATIC);
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  absl::Status status;
  if (result != SQLITE_DONE) status = ErrorOf(statement_.get());
  sqlite3_reset(statement_.get());
  next_parameter_ = 1;
  if (!status.ok()) return status;
  return false;
}

absl::Status Statement::Run() {
  XENOSCOPE_ASSIGN_OR_RETURN(const bool more, Step());
  return more ? InternalError("a statement that returns no rows has returned one")
              : absl::OkStatus();
}

std::string Statement::Text(int column) const { return std::string(AsText(Blob(column))); }

Bytes Statement::Blob(int column) const {
  const void* const bytes = sqlite3_column_blob(statement_.get(), column);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return {static_cast<const std::byte*>(bytes), bytes == nullptr ? 0 : size};
}

absl::StatusOr<Connection> Connection::Open(const std::string& path, Access access) {
  int flags = access == Access::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  if (access == Access::kCreate) flags |= SQLITE_OPEN_CREATE;
  sqlite3* database = nullptr;
  const int result = sqlite3_open_v2(path.c_str(), &database, flags, nullptr);
  if (database == nullptr) return ExhaustedError("{}: there is no memory for SQLite", path);
  Connection connection(database);
  if (result != SQLITE_OK) {
    return NotFoundError("{}: {}; check the path", path, sqlite3_errmsg(database));
  }
  sqlite3_busy_timeout(database, kLockTimeoutMs);
  // The file may be from somebody else: its schema runs no functions and cannot be written.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return connection;
}

absl::StatusOr<Statement> Connection::Prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (result != SQLITE_OK) return ErrorOf(database_.get());
  return Statement(statement);
}

absl::Status Connection::Run(const char* sql) const {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return ErrorOf(database_.get());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Connection::Number(std::string_view sql) const {
  XENOSCOPE_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  XENOSCOPE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  return found ? statement.Integer(0) : 0;
}

absl::Status Connection::Vacuum() const {
  // The directory that SQLite would choose may be closed to this process.
  const std::filesystem::path file = sqlite3_db_filename(database_.get(), "main");
  const std::unique_ptr<char, void (*)(void*)> set(
      sqlite3_mprintf("PRAGMA temp_store_directory = %Q", file.parent_path().c_str()),
      sqlite3_free);
  if (set == nullptr) return ExhaustedError("no memory");
  XENOSCOPE_RETURN_IF_ERROR(Run(set.get()));
  return Run("VACUUM");
}

absl::StatusOr<Transaction> Transaction::Begin(const Connection& connection) {
  XENOSCOPE_RETURN_IF_ERROR(connection.Run("BEGIN IMMEDIATE"));
  return Transaction(connection);
}

absl::Status Transaction::Commit() {
  XENOSCOPE_RETURN_IF_ERROR(connection_->Run("COMMIT"));
  connection_ = nullptr;
  return absl::OkStatus();
}

Transaction::~Transaction() {
  if (connection_ != nullptr) connection_->Run("ROLLBACK").IgnoreError();
}

}  // namespace xenoscope::store
