// SQLite's interface as values: a connection to a database file and its prepared statements.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "store/store.h"

namespace xenoscope::store {

class Connection;

// A prepared statement. Its connection outlives it.
class Statement {
 public:
  // Binds the next parameter.
  Statement& Bind(int64_t number);
  Statement& Bind(double number);
  Statement& Bind(std::string_view text);
  // The bytes are not copied: they must stay until the statement has run.
  Statement& Bind(Bytes bytes);
  // Takes the next row. Returns whether there is one; if not, the statement can be bound anew.
  absl::StatusOr<bool> Step();
  // Runs a statement that returns no rows.
  absl::Status Run();

  // Values of the row, by column from 0.
  [[nodiscard]] int64_t Integer(int column) const {
    return sqlite3_column_int64(statement_.get(), column);
  }
  [[nodiscard]] double Real(int column) const {
    return sqlite3_column_double(statement_.get(), column);
  }
  [[nodiscard]] std::string Text(int column) const;
  // Valid until the next Step.
  [[nodiscard]] Bytes Blob(int column) const;

 private:
  friend class Connection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int next_parameter_ = 1;
};

class Connection {
 public:
  // Opens the database file; makes it with Access::kCreate. Waits for locks of other processes for
  // up to a minute. Errors (of these and of statements): the status that fits SQLite's, with the
  // path.
  static absl::StatusOr<Connection> Open(const std::string& path, Access access);

  absl::StatusOr<Statement> Prepare(std::string_view sql) const;
  // Runs statements that return no rows.
  absl::Status Run(const char* sql) const;
  // Returns the whole number that the statement's only row has.
  absl::StatusOr<int64_t> Number(std::string_view sql) const;
  // Writes the file anew, without free pages and what they had. Needs as much disk again, in the
  // file's directory. Not in a transaction.
  absl::Status Vacuum() const;
  [[nodiscard]] int64_t LastRowId() const { return sqlite3_last_insert_rowid(database_.get()); }

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  explicit Connection(sqlite3* database) : database_(database) {}

  std::unique_ptr<sqlite3, Close> database_;
};

// A transaction, which is undone when it is destroyed before Commit.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(const Connection& connection);
  Transaction(Transaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  absl::Status Commit();

 private:
  explicit Transaction(const Connection& connection) : connection_(&connection) {}
  const Connection* connection_;
};

}  // namespace xenoscope::store
