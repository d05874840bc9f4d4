#include "mlxcel/chat/unicode_tables.h"

#include <algorithm>
#include <iterator>

namespace mlxcel::chat {

namespace {

struct Range {
  char32_t first;
  char32_t last;
};

template <size_t N>
bool contains(const Range (&ranges)[N], char32_t c) {
  const Range* found = std::partition_point(
      std::begin(ranges),
      std::end(ranges),
      [c](const Range& range) { return range.last < c; }
  );
  return found != std::end(ranges) && found->first <= c;
}

constexpr SpecialCase kSpecialCases[] = {
    {0x00df, "SS", "Ss"},
    {0x0149, "\u02bcN", "\u02bcN"},
    {0x01f0, "J\u030c", "J\u030c"},
    {0x0390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x03b0, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x0587, "\u0535\u0552", "\u0535\u0582"},
    {0x1e96, "H\u0331", "H\u0331"},
    {0x1e97, "T\u0308", "T\u0308"},
    {0x1e98, "W\u030a", "W\u030a"},
    {0x1e99, "Y\u030a", "Y\u030a"},
    {0x1e9a, "A\u02be", "A\u02be"},
    {0x1f50, "\u03a5\u0313", "\u03a5\u0313"},
    {0x1f52, "\u03a5\u0313\u0300", "\u03a5\u0313\u0300"},
    {0x1f54, "\u03a5\u0313\u0301", "\u03a5\u0313\u0301"},
    {0x1f56, "\u03a5\u0313\u0342", "\u03a5\u0313\u0342"},
    {0x1f80, "\u1f08\u0399", ""},
    {0x1f81, "\u1f09\u0399", ""},
    {0x1f82, "\u1f0a\u0399", ""},
    {0x1f83, "\u1f0b\u0399", ""},
    {0x1f84, "\u1f0c\u0399", ""},
    {0x1f85, "\u1f0d\u0399", ""},
    {0x1f86, "\u1f0e\u0399", ""},
    {0x1f87, "\u1f0f\u0399", ""},
    {0x1f88, "\u1f08\u0399", ""},
    {0x1f89, "\u1f09\u0399", ""},
    {0x1f8a, "\u1f0a\u0399", ""},
    {0x1f8b, "\u1f0b\u0399", ""},
    {0x1f8c, "\u1f0c\u0399", ""},
    {0x1f8d, "\u1f0d\u0399", ""},
    {0x1f8e, "\u1f0e\u0399", ""},
    {0x1f8f, "\u1f0f\u0399", ""},
    {0x1f90, "\u1f28\u0399", ""},
    {0x1f91, "\u1f29\u0399", ""},
    {0x1f92, "\u1f2a\u0399", ""},
    {0x1f93, "\u1f2b\u0399", ""},
    {0x1f94, "\u1f2c\u0399", ""},
    {0x1f95, "\u1f2d\u0399", ""},
    {0x1f96, "\u1f2e\u0399", ""},
    {0x1f97, "\u1f2f\u0399", ""},
    {0x1f98, "\u1f28\u0399", ""},
    {0x1f99, "\u1f29\u0399", ""},
    {0x1f9a, "\u1f2a\u0399", ""},
    {0x1f9b, "\u1f2b\u0399", ""},
    {0x1f9c, "\u1f2c\u0399", ""},
    {0x1f9d, "\u1f2d\u0399", ""},
    {0x1f9e, "\u1f2e\u0399", ""},
    {0x1f9f, "\u1f2f\u0399", ""},
    {0x1fa0, "\u1f68\u0399", ""},
    {0x1fa1, "\u1f69\u0399", ""},
    {0x1fa2, "\u1f6a\u0399", ""},
    {0x1fa3, "\u1f6b\u0399", ""},
    {0x1fa4, "\u1f6c\u0399", ""},
    {0x1fa5, "\u1f6d\u0399", ""},
    {0x1fa6, "\u1f6e\u0399", ""},
    {0x1fa7, "\u1f6f\u0399", ""},
    {0x1fa8, "\u1f68\u0399", ""},
    {0x1fa9, "\u1f69\u0399", ""},
    {0x1faa, "\u1f6a\u0399", ""},
    {0x1fab, "\u1f6b\u0399", ""},
    {0x1fac, "\u1f6c\u0399", ""},
    {0x1fad, "\u1f6d\u0399", ""},
    {0x1fae, "\u1f6e\u0399", ""},
    {0x1faf, "\u1f6f\u0399", ""},
    {0x1fb2, "\u1fba\u0399", "\u1fba\u0345"},
    {0x1fb3, "\u0391\u0399", ""},
    {0x1fb4, "\u0386\u0399", "\u0386\u0345"},
    {0x1fb6, "\u0391\u0342", "\u0391\u0342"},
    {0x1fb7, "\u0391\u0342\u0399", "\u0391\u0342\u0345"},
    {0x1fbc, "\u0391\u0399", ""},
    {0x1fc2, "\u1fca\u0399", "\u1fca\u0345"},
    {0x1fc3, "\u0397\u0399", ""},
    {0x1fc4, "\u0389\u0399", "\u0389\u0345"},
    {0x1fc6, "\u0397\u0342", "\u0397\u0342"},
    {0x1fc7, "\u0397\u0342\u0399", "\u0397\u0342\u0345"},
    {0x1fcc, "\u0397\u0399", ""},
    {0x1fd2, "\u0399\u0308\u0300", "\u0399\u0308\u0300"},
    {0x1fd3, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x1fd6, "\u0399\u0342", "\u0399\u0342"},
    {0x1fd7, "\u0399\u0308\u0342", "\u0399\u0308\u0342"},
    {0x1fe2, "\u03a5\u0308\u0300", "\u03a5\u0308\u0300"},
    {0x1fe3, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x1fe4, "\u03a1\u0313", "\u03a1\u0313"},
    {0x1fe6, "\u03a5\u0342", "\u03a5\u0342"},
    {0x1fe7, "\u03a5\u0308\u0342", "\u03a5\u0308\u0342"},
    {0x1ff2, "\u1ffa\u0399", "\u1ffa\u0345"},
    {0x1ff3, "\u03a9\u0399", ""},
    {0x1ff4, "\u038f\u0399", "\u038f\u0345"},
    {0x1ff6, "\u03a9\u0342", "\u03a9\u0342"},
    {0x1ff7, "\u03a9\u0342\u0399", "\u03a9\u0342\u0345"},
    {0x1ffc, "\u03a9\u0399", ""},
    {0xfb00, "FF", "Ff"},
    {0xfb01, "FI", "Fi"},
    {0xfb02, "FL", "Fl"},
    {0xfb03, "FFI", "Ffi"},
    {0xfb04, "FFL", "Ffl"},
    {0xfb05, "ST", "St"},
    {0xfb06, "ST", "St"},
    {0xfb13, "\u0544\u0546", "\u0544\u0576"},
    {0xfb14, "\u0544\u0535", "\u0544\u0565"},
    {0xfb15, "\u0544\u053b", "\u0544\u056b"},
    {0xfb16, "\u054e\u0546", "\u054e\u0576"},
    {0xfb17, "\u0544\u053d", "\u0544\u056d"},
};

constexpr Range kOtherDigits[] = {
    {0x00b2, 0x00b3},   {0x00b9, 0x00b9},   {0x1369, 0x1371},
    {0x19da, 0x19da},   {0x2070, 0x2070},   {0x2074, 0x2079},
    {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247c},
    {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
    {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},
    {0x278a, 0x2792},   {0x10a40, 0x10a43}, {0x10e60, 0x10e68},
    {0x11052, 0x1105a}, {0x1f100, 0x1f10a},
};

constexpr Range kOtherLower[] = {
    {0x00aa, 0x00aa},   {0x00ba, 0x00ba},   {0x02b0, 0x02b8},
    {0x02c0, 0x02c1},   {0x02e0, 0x02e4},   {0x0345, 0x0345},
    {0x037a, 0x037a},   {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},
    {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
    {0x2090, 0x209c},   {0x2170, 0x217f},   {0x24d0, 0x24e9},
    {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},
    {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},   {0x10780, 0x10780},
    {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
};

constexpr Range kOtherUpper[] = {
    {0x2160, 0x216f},
    {0x24b6, 0x24cf},
    {0x1f130, 0x1f149},
    {0x1f150, 0x1f169},
    {0x1f170, 0x1f189},
};

constexpr Range kLetterNumerals[] = {
    {0x3405, 0x3405},   {0x3483, 0x3483},   {0x382a, 0x382a},
    {0x3b4d, 0x3b4d},   {0x4e00, 0x4e00},   {0x4e03, 0x4e03},
    {0x4e07, 0x4e07},   {0x4e09, 0x4e09},   {0x4e5d, 0x4e5d},
    {0x4e8c, 0x4e8c},   {0x4e94, 0x4e94},   {0x4e96, 0x4e96},
    {0x4ebf, 0x4ec0},   {0x4edf, 0x4edf},   {0x4ee8, 0x4ee8},
    {0x4f0d, 0x4f0d},   {0x4f70, 0x4f70},   {0x5104, 0x5104},
    {0x5146, 0x5146},   {0x5169, 0x5169},   {0x516b, 0x516b},
    {0x516d, 0x516d},   {0x5341, 0x5341},   {0x5343, 0x5345},
    {0x534c, 0x534c},   {0x53c1, 0x53c4},   {0x56db, 0x56db},
    {0x58f1, 0x58f1},   {0x58f9, 0x58f9},   {0x5e7a, 0x5e7a},
    {0x5efe, 0x5eff},   {0x5f0c, 0x5f0e},   {0x5f10, 0x5f10},
    {0x62fe, 0x62fe},   {0x634c, 0x634c},   {0x67d2, 0x67d2},
    {0x6f06, 0x6f06},   {0x7396, 0x7396},   {0x767e, 0x767e},
    {0x8086, 0x8086},   {0x842c, 0x842c},   {0x8cae, 0x8cae},
    {0x8cb3, 0x8cb3},   {0x8d30, 0x8d30},   {0x9621, 0x9621},
    {0x9646, 0x9646},   {0x964c, 0x964c},   {0x9678, 0x9678},
    {0x96f6, 0x96f6},   {0xf96b, 0xf96b},   {0xf973, 0xf973},
    {0xf978, 0xf978},   {0xf9b2, 0xf9b2},   {0xf9d1, 0xf9d1},
    {0xf9d3, 0xf9d3},   {0xf9fd, 0xf9fd},   {0x20001, 0x20001},
    {0x20064, 0x20064}, {0x200e2, 0x200e2}, {0x20121, 0x20121},
    {0x2092a, 0x2092a}, {0x20983, 0x20983}, {0x2098c, 0x2098c},
    {0x2099c, 0x2099c}, {0x20aea, 0x20aea}, {0x20afd, 0x20afd},
    {0x20b19, 0x20b19}, {0x22390, 0x22390}, {0x22998, 0x22998},
    {0x23b1b, 0x23b1b}, {0x2626d, 0x2626d}, {0x2f890, 0x2f890},
};

}  // namespace

const SpecialCase* find_special_case(char32_t c) {
  const SpecialCase* found = std::partition_point(
      std::begin(kSpecialCases),
      std::end(kSpecialCases),
      [c](const SpecialCase& entry) { return entry.character < c; }
  );
  return found != std::end(kSpecialCases) && found->character == c ? found
                                                                   : nullptr;
}

bool is_other_digit(char32_t c) {
  return contains(kOtherDigits, c);
}

bool is_letter_numeral(char32_t c) {
  return contains(kLetterNumerals, c);
}

bool is_other_lower(char32_t c) {
  return contains(kOtherLower, c);
}

bool is_other_upper(char32_t c) {
  return contains(kOtherUpper, c);
}

}  // namespace mlxcel::chat
