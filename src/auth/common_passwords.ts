/**
 * Lists the passwords that attackers guess first, except those too short for any policy. They are
 * all in lower case, because passwords are compared with them case-insensitively.
 */

/** Returns whether a password is one of those that attackers guess first. */
export function isCommonPassword(password: string): boolean {
  return COMMON_PASSWORDS.has(password.toLowerCase());
}

const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  `
  00000000 000000000 0000000000 01234567 012345678 0123456789 0987654321 10203040 1020304050
  11111111 111111111 1111111111 11112222 11223344 1122334455 12121212 123123123 123123123123
  12312312 12341234 123412341234 12344321 12345678 123456789 1234567890 12345678910 1234567891
  123456781 123456787 123456788 1234567a 12345678a 123456789a 123456789q 123456789z 12345679
  123456aa 123456ab 123456abc 123456qwerty 12345qwert 1234abcd 1234qwer 1234rewq 123654789
  123abc123 123qwe123 123qweasd 123qweasdzxc 12qwaszx 13131313 13243546 14141414 147258369
  147852369 159357456 159753456 1a2b3c4d 1q2w3e4r 1q2w3e4r5t 1q2w3e4r5t6y 1qaz1qaz 1qaz2wsx
  1qaz2wsx3edc 1qazxsw2 20202020 21122112 22222222 23232323 25252525 31415926 314159265
  33333333 44444444 54321123 55555555 55667788 5555555555 66666666 666666666 69696969 741852963
  77777777 777777777 7777777777 789456123 78945612 87654321 876543210 88888888 888888888
  8888888888 963852741 98765432 987654321 9876543210 99999999 999999999 9999999999 a1234567
  a12345678 a123456789 a1b2c3d4 a1b2c3d4e5 aa123456 aa12345678 aaaaaaaa aaaaaaaaa aaaaaaaaaa
  abc12345 abc123456 abc123abc abcabcabc abcd1234 abcd12345 abcde12345 abcdefgh abcdefghi
  abcdefghij access14 admin123 admin1234 admin12345 admin123456 adminadmin administrator
  adminpassword alejandro alexander alexandra america1 anderson andromeda angelica anthony1
  apple123 arsenal1 asdasdasd asdf1234 asdfasdf asdfasdfasdf asdfghjk asdfghjkl asdfjkl1
  asdqwe123 ashley123 asshole1 azerty123 azertyui azertyuiop babygirl babygirl1 barcelona
  baseball baseball1 basketball batman123 beautiful benjamin bismillah blahblah blink182
  bluebird bonjour1 brandon1 brooklyn business butterfly california caroline challenge
  champion changeit changeme changeme1 changeme123 changethis charlie1 charlotte chelsea1
  chester1 chicken1 chocolat chocolate christian christina cjmasterinf claudia1 clifford
  computer computer1 consumer cookie123 corvette courtney cowboys1 creative crystal1 darkness
  david123 december default1 defaultpassword dolphins dragon12 dragon123 dragon1234 drowssap
  einstein elephant elizabeth emmanuel eternity everyone explorer f00tball facebook familia1
  fernando fireball flamingo flower123 football football1 football123 formula1 forever1
  francesco freedom1 friends1 friendship fuckyou1 fuckyou123 fuckyou2 galatasaray gangsta1
  garfield getmein1 giovanni godzilla goldfish google123 gordon24 guest123 guinness hardcore
  hello123 hello1234 hellohello hellokitty hellyeah hercules homepage hotmail1 hunter12
  iceman123 idontknow ihateyou iloveyou iloveyou1 iloveyou12 iloveyou123 iloveyou2 iloveyou3
  infinity internet internet1 ironman1 isabella jackson1 jasmine1 jeffrey1 jennifer jessica1
  jessica123 johnson1 jonathan jordan123 jordan23 juventus katherine killer123 kimberly
  kristina lastname lebron23 legolas1 leonardo letmein1 letmein12 letmein123 letmein2 letmeinn
  linkedin liverpool liverpool1 lollipop login123 logitech lovelove loveme123 lovely123
  loveyou1 macintosh madison1 magnolia manchester mandarin margaret marianne marlboro martina1
  master123 masterkey matthew1 maverick mercedes metallica michael1 michael123 michelle
  microsoft midnight midnight1 millions minecraft mohammed money123 monkey12 monkey123
  monster1 moonlight motorola mountain mustang1 mypassword nicholas nicole123 nintendo
  nirvana1 nopassword november number1234 o1234567 october1 operator p4ssw0rd p@ssw0rd
  p@ssw0rd1 p@ssw0rd123 p@ssword pa$$w0rd pa55w0rd pa55word pakistan paradise passpass passw0rd
  passw0rd1 password password! password0 password01 password1 password1! password10 password11
  password12 password123 password1234 password12345 password123456 password13 password2
  password21 password22 password3 password4 password5 password6 password69 password7 password8
  password88 password9 password99 passwordpassword passwort passwort1 patricia patricks
  pavilion peekaboo penelope philippe phoenix1 playboy1 playstation please123 pokemon1
  pokemon123 porsche1 portugal postgres postgres1 pretty123 princess princess1 princess123
  princesa privates professor q1w2e3r4 q1w2e3r4t5 q1w2e3r4t5y6 qazqazqaz qazwsx123 qazwsxed
  qazwsxedc qazwsxedc123 qazxsw21 qq123456 qq123456789 qqqqqqqq qweasd123 qweasdzx qweasdzxc
  qweqweqwe qwer1234 qwer12345 qwerasdf qwerasdfzxcv qwert123 qwert1234 qwert12345 qwerty11
  qwerty12 qwerty123 qwerty1234 qwerty12345 qwerty123456 qwertyqwerty qwertyui qwertyuiop
  qwertyuiop123 rainbow1 rangers1 realmadrid redskins remember richard1 rockstar rockyou1
  rootroot rootpass rootpassword root1234 runescape samantha samsung1 samsung123 sandiego
  sayangku scarface scooter1 scorpion sebastian secret12 secret123 secret1234 secretpassword
  september serenity shadow12 shadow123 shopping slipknot snickers snowball snowboard snowflake
  soccer12 soccer123 something southside spiderman spitfire starcraft stardust starlight
  startrek starwars starwars1 steelers stephanie sterling strawberry student1 success1 summer12
  summer123 sunflower sunshine sunshine1 sunshine123 superman superman1 superman123 superstar
  supervisor swordfish system123 tarheels teamo123 telephone temp1234 temppass temporary
  test1234 test12345 testing1 testing123 testpass testpassword testtest thebeast thomas123
  thunder1 tidemark tidemark1 tidemark123 tigger12 tinkerbell toor1234 treasure trinity1
  trustno1 turtle12 twilight undertaker universe university user1234 username vanessa1
  valentin valentina valentine victoria vincent1 vladimir volleyball w1234567 warcraft
  warhammer welcome1 welcome12 welcome123 welcome1234 westside whatever whatever1 william1
  willow12 winter12 winter123 wolfgang wrestling xavier12 xxxxxxxx yankees1 yourmom1
  yellow12 zaq12wsx zaq1xsw2 zaq1zaq1 zxasqw12 zxcvbnm1 zxcvbnm123 zxcvzxcv zzzzzzzz
  `
    .trim()
    .split(/\s+/),
);
