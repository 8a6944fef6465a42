#include "report/profile/row_words.h"

namespace xenoscope::report {

std::vector<std::string> RowWords(const ProfileReport& profile, const correlate::ProfileRow& row) {
  std::vector<std::string> words;
  words.reserve(profile.by.size());
  for (const correlate::Dimension dimension : profile.by) {
    words.push_back(DimensionText(profile, row, dimension));
  }
  return words;
}

}  // namespace xenoscope::report
